package negotiate

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/soap"
)

// The fields of a message without a head (docs/negotiation.md, section 4).
var (
	defaultRequestFields = []soap.Field{{Name: "Content-Type", Value: "text/xml; charset=utf-8"}, {Name: "SOAPAction", Value: `""`}}
	defaultReplyFields   = []soap.Field{{Name: "Content-Type", Value: "text/xml; charset=utf-8"}}
)

// isDefault reports whether fields of an offer or answer are those of this version; none means them.
func isDefault(fields, defaults []soap.Field) bool {
	if fields == nil {
		return true
	}
	if len(fields) != len(defaults) {
		return false
	}
	for i, f := range fields {
		if !strings.EqualFold(f.Name, defaults[i].Name) || f.Value != defaults[i].Value {
			return false
		}
	}
	return true
}

// DefaultRequestHead is what a request without a head means in a session negotiated at path: a POST there, with the default fields.
// A path that cannot stand in a request line is taken as "/".
func DefaultRequestHead(path string) []byte {
	head, err := http1.AppendRequestLine(nil, "POST", path, "HTTP/1.1")
	if err != nil {
		head, _ = http1.AppendRequestLine(nil, "POST", "/", "HTTP/1.1")
	}
	return appendFields(head, defaultRequestFields)
}

// DefaultReplyHead is what a reply without a head means: status 200, with the default fields.
func DefaultReplyHead() []byte {
	return appendFields([]byte("HTTP/1.1 200 OK\r\n"), defaultReplyFields)
}

// appendFields ends a head with fields of our own making.
func appendFields(head []byte, fields []soap.Field) []byte {
	for _, f := range fields {
		head = append(head, f.Name+": "+f.Value+"\r\n"...)
	}
	return http1.AppendEnd(head)
}

// TrimHead is a message's head as it travels on a stream: without Host, Content-Length, Connection and Transfer-Encoding, which speak of one
// HTTP connection and of a body's framing on it. It is head itself when there is nothing to leave out. Errors: Malformed, when head is
// anything else than one whole head.
func TrimHead(head []byte) ([]byte, error) {
	h, n, err := http1.ParseHead(head, 0)
	if err == nil && n != len(head) {
		err = errors.New("octets behind the empty line")
	}
	if err != nil {
		return nil, &Error{Code: Malformed, At: int64(n), Err: err}
	}
	for _, f := range h.Fields() {
		if isFraming(f) {
			return http1.AppendEdited(nil, &h, isFraming, nil), nil
		}
	}
	return head, nil
}

func isFraming(f http1.Field) bool {
	return f.Is("Host") || f.Is("Content-Length") || f.Is("Connection") || f.Is("Transfer-Encoding")
}

// implicit says what messages of a session say without a head.
type implicit struct {
	path string
	// wire is the head that goes with every message that has none, nil if none needs to: a query or credentials of the URL must not be
	// written down in the session's context, so they travel with the messages.
	wire []byte
	// full is the head of such a message as the service is to see it.
	full []byte
}

func implicitOf(u *url.URL) implicit {
	im := implicit{path: pathOf(u)}
	im.full = DefaultRequestHead(im.path)
	if u.RawQuery == "" && u.User == nil {
		return im
	}
	head, err := http1.AppendRequestLine(nil, "POST", requestTarget(u), "HTTP/1.1")
	if err != nil {
		return im
	}
	fields := defaultRequestFields
	if u.User != nil {
		password, _ := u.User.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		fields = append(fields[:len(fields):len(fields)], soap.Field{Name: "Authorization", Value: "Basic " + credentials})
	}
	im.wire = appendFields(head, fields)
	im.full = im.wire
	return im
}

func pathOf(u *url.URL) string {
	if p := u.EscapedPath(); strings.HasPrefix(p, "/") {
		return p
	}
	return "/"
}

func requestTarget(u *url.URL) string {
	if u.RawQuery != "" {
		return pathOf(u) + "?" + u.RawQuery
	}
	return pathOf(u)
}

// headFor is the head of a message as it travels on a stream.
func (s *Session) headFor(l *sessionStream, head []byte) ([]byte, error) {
	if l.path == s.implicit.path {
		return s.implicit.forWire(head)
	}
	if head == nil {
		return s.implicit.full, nil
	}
	return TrimHead(head)
}

// forWire is the head to send for a caller's head: nil when it says what no head says.
func (im *implicit) forWire(head []byte) ([]byte, error) {
	if head == nil {
		return im.wire, nil
	}
	head, err := TrimHead(head)
	if err == nil && im.wire == nil && bytes.Equal(head, im.full) {
		return nil, nil
	}
	return head, err
}
