package httpmsg

import (
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Replies makes responses of net/http, as a client gets them, of the replies of one lane. The zero
// value is ready. It is safe for concurrent use.
type Replies struct {
	seen recent[seenReply]
}

// seenReply is what replies with the same head have in common.
type seenReply struct {
	status string
	code   int
	fields *fields
}

// implicitReply is the head of replies without one.
var implicitReply = negotiate.DefaultReplyHead()

// Response returns a reply as the response to req. Only the body is shared with the reply. Errors:
// Malformed, for a malformed head; the body is closed then.
func (r *Replies) Response(m *streamer.Message, req *http.Request) (*http.Response, error) {
	seen, err := r.find(m)
	if err != nil {
		return nil, err
	}
	resp := &http.Response{
		Status:        seen.status,
		StatusCode:    seen.code,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        seen.fields.header(nil),
		Body:          http.NoBody,
		ContentLength: 0,
		Request:       req,
	}
	if m.Body != nil {
		resp.Body, resp.ContentLength = readCloser(m.Body), -1
	}
	return resp, nil
}

// Head returns the status and the fields of a reply, which are the caller's; see
// [Replies.Response].
func (r *Replies) Head(m *streamer.Message) (status int, header http.Header, err error) {
	seen, err := r.find(m)
	if err != nil {
		return 0, nil, err
	}
	return seen.code, seen.fields.header(nil), nil
}

func (r *Replies) find(m *streamer.Message) (*seenReply, error) {
	head := m.Head
	if head == nil {
		head = implicitReply
	}
	seen := r.seen.get(0, head)
	if seen == nil {
		var err error
		if seen, err = parseReply(head); err != nil {
			_ = CloseReader(m.Body)
			return nil, err
		}
		r.seen.put(0, head, seen)
	}
	return seen, nil
}

func parseReply(octets []byte) (*seenReply, error) {
	head, n, err := http1.ParseHead(octets, 0)
	if err != nil || !head.IsReply() {
		return nil, &negotiate.Error{Code: negotiate.Malformed, At: int64(n), Remote: true, Err: err}
	}
	return &seenReply{
		status: strings.TrimSpace(string(head.StartLine()[min(len(head.Version())+1, len(head.StartLine())):])),
		code:   head.Status(),
		fields: fieldsOf(&head, nil),
	}, nil
}

// Response returns a single reply as the response to req; see [Replies.Response].
func Response(m *streamer.Message, req *http.Request) (*http.Response, error) {
	return new(Replies).Response(m, req)
}
