package session

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// plainTransport sends plain SOAP with references to the common store of a session, and again
// without them if the receiver could not put something back. It is an [http.RoundTripper].
type plainTransport struct {
	base http.RoundTripper
	// referrer returns that of the session; nil: it has none now.
	referrer func() *unchanging.Referrer
	taken    *atomic.Int64 // counts the parts of messages that references stand for
}

// maxReferring is the longest message in which references are made, in bytes: it is held whole, to
// be sent again.
const maxReferring = 1 << 20

// RoundTrip implements [http.RoundTripper].
func (t *plainTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r := t.referrer()
	if r == nil || !isPlainSOAP(req) {
		return t.base.RoundTrip(req)
	}
	taken := (*unchanging.Taken)(nil)
	if others := req.Header.Values(negotiate.FragmentsField); len(others) == 0 {
		if taken = r.Take(); taken != nil {
			req = naming(req, taken)
		}
	}
	resp, err := t.send(r, req)
	if err != nil {
		return nil, err
	}
	return wholeReply(r, taken, resp)
}

// isPlainSOAP reports whether a request is one of SOAP.
func isPlainSOAP(req *http.Request) bool {
	return req.Method == http.MethodPost && soap.ParseContentType(req.Header.Get("Content-Type")).Version() != soap.None
}

// naming returns a request that names what its reply may refer to.
func naming(req *http.Request, taken *unchanging.Taken) *http.Request {
	other := *req
	other.Header = req.Header.Clone()
	other.Header.Set(negotiate.FragmentsField, taken.Field())
	return &other
}

// send sends a request, with references if it can have some.
func (t *plainTransport) send(r *unchanging.Referrer, req *http.Request) (*http.Response, error) {
	if !refersIn(req) {
		return t.base.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	by, references := r.Refer(req.Context(), body)
	if references == nil {
		return t.base.RoundTrip(with(req, body))
	}
	resp, err := t.base.RoundTrip(with(req, by))
	if err != nil {
		return nil, err
	}
	if why, forever := refusedBy(resp, references); why != nil {
		_ = resp.Body.Close()
		r.Refused(references, forever, why)
		return t.base.RoundTrip(with(req, body))
	}
	t.taken.Add(int64(len(references)))
	return resp, nil
}

// CloseIdleConnections calls the same method of base, where there is one.
func (t *plainTransport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// refersIn reports whether references are made in a request of SOAP.
func refersIn(req *http.Request) bool {
	return req.Body != nil && req.ContentLength > 0 && req.ContentLength <= maxReferring &&
		req.Header.Get("Content-Encoding") == ""
}

// with returns a request with another body.
func with(req *http.Request, body []byte) *http.Request {
	other := *req
	other.Body, other.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	other.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return &other
}

// refusedBy returns why a reply says that a message was not processed because of its references;
// nil if it does not. forever: the receiver does not know what references are. The body of any
// other reply can be read from its beginning.
func refusedBy(resp *http.Response, references []string) (why error, forever bool) {
	if resp.StatusCode/100 != 5 || soap.ParseContentType(resp.Header.Get("Content-Type")).Version() == soap.None {
		return nil, false
	}
	start, err := beginning(resp, unchanging.MaxFault)
	if err != nil {
		return nil, false
	}
	return unchanging.RefusedBy(start, references)
}

// beginning reads the beginning of a reply's body, which can be read from there afterwards.
func beginning(resp *http.Response, most int64) ([]byte, error) {
	start, err := io.ReadAll(io.LimitReader(resp.Body, most))
	resp.Body = httpmsg.Peeked{
		Reader: io.MultiReader(bytes.NewReader(start), httpmsg.Failing(err), resp.Body), Closer: resp.Body,
	}
	return start, err
}

// wholeReply returns a reply with what it refers to. A reply that cannot be made whole is none: the
// error is FateUnknown, as the request was processed.
func wholeReply(r *unchanging.Referrer, taken *unchanging.Taken, resp *http.Response) (*http.Response, error) {
	if taken == nil && !r.Recurs() || resp.Header.Get("Content-Encoding") != "" ||
		soap.ParseContentType(resp.Header.Get("Content-Type")).Version() == soap.None {
		return resp, nil
	}
	body := &referringReply{from: resp.Body, referrer: r, taken: taken}
	resp.Body = body
	if taken == nil || resp.ContentLength < 0 {
		return resp, nil // its length stays as it is
	}
	body.begin()
	if body.lost != nil {
		_ = body.Close()
		return nil, body.lost
	}
	if body.more != 0 {
		resp.ContentLength += int64(body.more)
		resp.Header.Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	}
	return resp, nil
}

// referringReply is the body of a reply that may have references.
type referringReply struct {
	from     io.ReadCloser
	referrer *unchanging.Referrer
	taken    *unchanging.Taken
	begun    bool
	more     int    // how much longer the body is than what traveled, in bytes
	start    []byte // its beginning, as far as that is not read
	err      error  // what follows it
	lost     error  // why there is no reply
}

// begin reads the beginning, and puts fragments back.
func (b *referringReply) begin() {
	b.begun = true
	b.start, b.err = unchanging.Beginning(nil, nil, b.from)
	whole, fragments, err := b.referrer.RestoreReply(b.taken, b.start)
	switch {
	case err != nil:
		b.lost = &negotiate.Error{Code: negotiate.FateUnknown, At: -1, Remote: true, Err: err}
		b.start, b.err = nil, b.lost
	case fragments > 0:
		b.more = len(whole) - len(b.start)
		b.start = whole
	}
}

// Read implements [io.Reader].
func (b *referringReply) Read(p []byte) (int, error) {
	if !b.begun {
		b.begin()
	}
	if len(b.start) > 0 {
		n := copy(p, b.start)
		b.start = b.start[n:]
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.from.Read(p)
}

// Close closes the body below.
func (b *referringReply) Close() error { return b.from.Close() }
