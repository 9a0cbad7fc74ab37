package httpmsg

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Requests makes requests of net/http, as a server gets them, of the messages of a session. It is
// safe for concurrent use.
type Requests struct {
	origin, host string
	implicit     []byte // the head of messages without one
	seen         recent[seenRequest]
}

// seenRequest is what requests with the same head have in common.
type seenRequest struct {
	method, target string
	url            url.URL
	fields         *fields
}

// NewRequests returns the Requests of the session with these facts.
func NewRequests(facts *negotiate.Facts) *Requests {
	r := &Requests{origin: facts.Origin, implicit: negotiate.DefaultRequestHead(facts.Path)}
	if u, err := url.Parse(facts.Origin); err == nil {
		r.host = u.Host
	}
	return r
}

// Incoming is what a request takes beside its header, in one piece of memory with what its owner
// adds. It is for one request.
type Incoming struct {
	request http.Request
	url     url.URL
	values  [incomingValues]string
}

// incomingValues is how many values of fields most requests have at most.
const incomingValues = 4

// Request returns a message of a lane as a request that came over a connection from remote. Only
// the body is shared with the message. Its length is given where it is known without waiting. The
// host is that of the negotiated URL whatever the target is: a session never leads to another host.
// Errors: Malformed.
func (r *Requests) Request(ctx context.Context, lane uint64, m *streamer.Message) (*http.Request, error) {
	return r.RequestIn(ctx, lane, m, new(Incoming))
}

// RequestIn is Request with the memory to take.
func (r *Requests) RequestIn(
	ctx context.Context, lane uint64, m *streamer.Message, in *Incoming,
) (*http.Request, error) {
	head := m.Head
	if head == nil {
		head = r.implicit
	}
	seen := r.seen.get(lane, head)
	if seen == nil {
		var err error
		if seen, err = r.parse(head); err != nil {
			return nil, err
		}
		r.seen.put(lane, head, seen)
	}
	in.url = seen.url
	req := &in.request
	*req = *req.WithContext(ctx) // the only way to set the context; the copy is on the stack
	req.Method, req.URL, req.Header = seen.method, &in.url, seen.fields.header(in.values[:0])
	req.Proto, req.ProtoMajor, req.ProtoMinor = "HTTP/1.1", 1, 1
	req.Host, req.RequestURI, req.Body = r.host, seen.target, http.NoBody
	if m.Body != nil {
		req.Body, req.ContentLength = readCloser(m.Body), m.KnownLength()
	}
	return req, nil
}

// parse reads a head, and refuses what HTTP forbids.
func (r *Requests) parse(octets []byte) (*seenRequest, error) {
	head, n, err := http1.ParseHead(octets, 0)
	if err != nil || head.IsReply() {
		return nil, &negotiate.Error{Code: negotiate.Malformed, At: int64(n), Remote: true, Err: err}
	}
	if err := http1.CheckFields(&head); err != nil {
		return nil, negotiate.AsMalformed(err)
	}
	target, err := http1.OriginForm(&head, func(scheme, authority string) bool {
		u, err := url.Parse(scheme + "://" + authority)
		return err == nil && u.User == nil && negotiate.Origin(u) == r.origin
	})
	if err != nil {
		return nil, negotiate.AsMalformed(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), string(head.Method()), target, nil)
	if err != nil {
		return nil, negotiate.AsMalformed(err)
	}
	req.URL.Scheme, req.URL.Host, req.URL.User = "", "", nil
	return &seenRequest{
		method: req.Method,
		target: target,
		url:    *req.URL,
		fields: fieldsOf(&head, IsFraming),
	}, nil
}

// readCloser returns a body as net/http has it.
func readCloser(body io.Reader) io.ReadCloser {
	if c, ok := body.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(body)
}
