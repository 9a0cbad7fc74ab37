package negotiate

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/url"

	"github.com/hhfr/hhfr/internal/http1"
)

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
	_, fields, _ := bytes.Cut(im.full, []byte("\r\n"))
	head = append(head, fields...)
	if u.User != nil {
		password, _ := u.User.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		head = append(head[:len(head)-len("\r\n")], "Authorization: Basic "+credentials+"\r\n\r\n"...)
	}
	im.wire, im.full = head, head
	return im
}

func requestTarget(u *url.URL) string {
	if u.RawQuery != "" {
		return pathOf(u) + "?" + u.RawQuery
	}
	return pathOf(u)
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
