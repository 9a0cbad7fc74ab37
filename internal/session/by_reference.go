package session

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/unchanging"
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
	if r == nil || !refersIn(req) {
		return t.base.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	by, references := r.Refer(body)
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

// refersIn reports whether references are made in a request.
func refersIn(req *http.Request) bool {
	return req.Method == http.MethodPost && req.Body != nil && req.ContentLength > 0 &&
		req.ContentLength <= maxReferring && req.Header.Get("Content-Encoding") == "" &&
		soap.ParseContentType(req.Header.Get("Content-Type")).Version() != soap.None
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
	start, err := io.ReadAll(io.LimitReader(resp.Body, unchanging.MaxFault))
	resp.Body = &httpmsg.Peeked{
		Reader: io.MultiReader(bytes.NewReader(start), httpmsg.Failing(err), resp.Body), Closer: resp.Body,
	}
	if err != nil {
		return nil, false
	}
	return unchanging.RefusedBy(start, references)
}
