package httpmsg

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// TrimHead returns a message's head as it travels on a stream: without Host, Content-Length,
// Connection and Transfer-Encoding, which are about one HTTP connection and a body's framing on it.
// It returns head itself when there is nothing to leave out. Errors: Malformed, when head is
// anything other than one whole head.
func TrimHead(head []byte) ([]byte, error) {
	h, n, err := http1.ParseHead(head, 0)
	if err == nil && n != len(head) {
		err = errors.New("bytes after the empty line")
	}
	if err != nil {
		return nil, &negotiate.Error{Code: negotiate.Malformed, At: int64(n), Err: err}
	}
	for _, f := range h.Fields() {
		if IsFraming(f) {
			return http1.AppendEdited(nil, &h, IsFraming, nil), nil
		}
	}
	return head, nil
}

// IsFraming reports whether a field is about one HTTP connection, or a body's framing on it.
func IsFraming(f http1.FieldLine) bool { return isFraming(string(f.Name)) }

func isFraming(name string) bool {
	switch len(name) {
	case len("Host"), len("Connection"), len("Content-Length"), len("Transfer-Encoding"):
		return slices.ContainsFunc(framing, func(f string) bool { return strings.EqualFold(f, name) })
	}
	return false
}

var framing = []string{"Host", "Content-Length", "Connection", "Transfer-Encoding"}

// DefaultHead is what a message without a head means in a session.
type DefaultHead struct {
	Path string
	// wire is the head that goes with every message that has none; nil if none needs to. A query or
	// credentials of the URL must not be written to the session's context, so they travel with the
	// messages.
	wire []byte
	// Full is the head of such a message as the service is to see it.
	Full []byte

	sent recent[[]byte] // heads of callers, as they travel
}

// DefaultHeadOf returns the default head of a session with the service at a URL.
func DefaultHeadOf(u *url.URL) *DefaultHead {
	im := &DefaultHead{Path: negotiate.PathOf(u)}
	im.Full = negotiate.DefaultRequestHead(im.Path)
	if u.RawQuery == "" && u.User == nil {
		return im
	}
	head, err := http1.AppendRequestLine(nil, "POST", requestTarget(u), "HTTP/1.1")
	if err != nil {
		return im
	}
	_, fields, _ := bytes.Cut(im.Full, []byte("\r\n"))
	head = append(head, fields...)
	if u.User != nil {
		password, _ := u.User.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		head = append(head[:len(head)-len("\r\n")], "Authorization: Basic "+credentials+"\r\n\r\n"...)
	}
	im.wire, im.Full = head, head
	return im
}

func requestTarget(u *url.URL) string {
	if u.RawQuery != "" {
		return negotiate.PathOf(u) + "?" + u.RawQuery
	}
	return negotiate.PathOf(u)
}

// ForWire returns the head to send for a caller's head: nil when it says the same as no head. It
// must not be changed. Errors: Malformed.
func (im *DefaultHead) ForWire(head []byte) ([]byte, error) {
	if head == nil {
		return im.wire, nil
	}
	if sent := im.sent.get(0, head); sent != nil {
		return *sent, nil
	}
	sent, err := TrimHead(head)
	if err != nil {
		return nil, err
	}
	if im.wire == nil && bytes.Equal(sent, im.Full) {
		sent = nil
	}
	sent = bytes.Clone(sent) // it may be the caller's own
	im.sent.put(0, head, &sent)
	return sent, nil
}

// Implied is how long the heads are that messages of a session do not carry; path is that of its
// service, as in its facts.
func Implied(path string) streamer.ImpliedHeads {
	request, reply := negotiate.DefaultRequestHead(path), negotiate.DefaultReplyHead()
	return streamer.ImpliedHeads{Request: uint16(min(len(request), math.MaxUint16)), Reply: uint16(len(reply))}
}
