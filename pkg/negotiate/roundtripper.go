package negotiate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// RoundTripper puts HHFR under an unchanged SOAP client of net/http: it negotiates once per scheme, host and port, with the URL of the first SOAP
// message that goes there, and carries the SOAP POSTs that follow over the session. All other requests, and those to ends that do not
// agree, go through the RoundTripper below it, as they are. It is an [http.RoundTripper], safe for concurrent use.
//
// The errors of a request are those of [Session.Call]. What reaches the service by a stream is the request as net/http has it; fields that net/http
// itself adds, User-Agent and Accept-Encoding, are not there.
type RoundTripper struct {
	base   http.RoundTripper
	dialer *Dialer

	wait    sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	origins map[string]*originSession
}

// originSession is what became of one origin.
type originSession struct {
	done    chan struct{} // closed when session and err are set
	session *Session
	err     error
	until   time.Time // when an origin that did not agree is asked again
}

// NewRoundTripper makes one over base; nil means [http.DefaultTransport]. Config.HTTPClient is not used: offers, and messages that fall back to plain
// SOAP, go through base. Errors: BadConfig. The caller calls Close in the end.
func NewRoundTripper(base http.RoundTripper, cfg Config) (*RoundTripper, error) {
	if base == nil {
		base = http.DefaultTransport
	}
	cfg.HTTPClient = &http.Client{Transport: base, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	d, err := NewDialer(cfg)
	if err != nil {
		return nil, err
	}
	return &RoundTripper{base: base, dialer: d, origins: map[string]*originSession{}}, nil
}

// RoundTrip sends one request.
func (t *RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isSOAP(req) {
		return t.base.RoundTrip(req)
	}
	session, err := t.session(req)
	if err != nil {
		_ = closeReader(req.Body)
		return nil, err
	}
	if session == nil || !session.streaming() {
		return t.base.RoundTrip(req)
	}
	head, err := headOfRequest(req)
	if err != nil {
		_ = closeReader(req.Body)
		return nil, err
	}
	reply, err := session.Call(req.Context(), &streamer.Message{Head: head, Body: bodyOf(req)})
	if err != nil {
		return nil, err
	}
	return response(reply, req)
}

// isSOAP tells the requests that sessions are for.
func isSOAP(req *http.Request) bool {
	return req.Method == http.MethodPost && req.Body != nil && req.URL != nil && (req.URL.Scheme == "http" || req.URL.Scheme == "https") &&
		soap.ParseContentType(req.Header.Get("Content-Type")).Version() != soap.None && (req.Host == "" || req.Host == req.URL.Host)
}

// session gives the session of a request's origin; nil for plain SOAP. One request asks, others wait for it.
func (t *RoundTripper) session(req *http.Request) (*Session, error) {
	origin := originOf(req.URL)
	now := t.dialer.cfg.Clock.Now()
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, &Error{Code: Closed, At: -1}
	}
	o := t.origins[origin]
	if o == nil || o.isOver(now, t.keep()) {
		if o != nil && o.session != nil {
			old := o.session
			t.wait.Go(func() { _ = old.Close() })
		}
		fresh := &originSession{done: make(chan struct{})}
		t.origins[origin] = fresh
		t.wait.Go(func() { t.dial(fresh, req.URL) })
		o = fresh
	}
	t.mu.Unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
}

// isOver tells whether it is time to ask an origin again that does not agree, or whose session turned to plain SOAP.
func (o *originSession) isOver(now time.Time, keep time.Duration) bool {
	select {
	case <-o.done:
	default:
		return false
	}
	if o.until.IsZero() && o.session != nil && !o.session.streaming() {
		o.until = now.Add(keep)
	}
	return !o.until.IsZero() && now.After(o.until)
}

// keep is how long an origin is not asked again.
func (t *RoundTripper) keep() time.Duration {
	if t.dialer.cfg.RememberFor < 0 {
		return DefaultRememberFor
	}
	return t.dialer.cfg.RememberFor
}

// dial negotiates with an origin. It is bounded by the dialer's timeout, not by the request that came first.
func (t *RoundTripper) dial(o *originSession, u *url.URL) {
	defer close(o.done)
	bare := *u
	// What is in the query or names a user is this request's, and goes with its own head.
	bare.RawQuery, bare.User = "", nil
	session, err := t.dialer.Dial(context.Background(), bare.String())
	until := t.dialer.cfg.Clock.Now().Add(t.keep())
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(err, &Error{Code: Unreachable}):
		// The request itself finds out, and so does the next one.
		o.until = time.Unix(0, 1)
	case err != nil:
		o.err, o.until = err, until
	case t.closed:
		t.wait.Go(func() { _ = session.Close() })
		o.err = &Error{Code: Closed, At: -1}
	default:
		o.session = session
		if !session.Agreed().HHFR {
			o.until = until
		}
	}
}

// Session gives the session of an origin, such as "http://host:80", and false if there is none.
func (t *RoundTripper) Session(origin string) (*Session, bool) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, false
	}
	t.mu.Lock()
	o := t.origins[originOf(u)]
	t.mu.Unlock()
	if o == nil {
		return nil, false
	}
	<-o.done
	return o.session, o.session != nil
}

// CloseIdleConnections does so below, where there is such a method.
func (t *RoundTripper) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Close ends all sessions, and waits for what they run. It is idempotent.
func (t *RoundTripper) Close() error {
	t.mu.Lock()
	t.closed = true
	var list []*originSession
	for _, o := range t.origins {
		list = append(list, o)
	}
	t.mu.Unlock()
	var errs []error
	for _, o := range list {
		<-o.done
		if o.session != nil {
			errs = append(errs, o.session.Close())
		}
	}
	t.wait.Wait()
	return errors.Join(errs...)
}

// headOfRequest writes down what net/http says of a request, its fields in alphabetical order.
func headOfRequest(req *http.Request) ([]byte, error) {
	head, err := http1.AppendRequestLine(nil, req.Method, requestTarget(req.URL), "HTTP/1.1")
	if err != nil {
		return nil, malformed(err)
	}
	fields := req.Header
	if req.URL.User != nil && req.Header.Get("Authorization") == "" {
		password, _ := req.URL.User.Password()
		with := &http.Request{Header: req.Header.Clone()}
		with.SetBasicAuth(req.URL.User.Username(), password)
		fields = with.Header
	}
	return appendHeader(head, fields, func(err error) error { return malformed(err) })
}

// appendHeader ends a head with the fields of a message of net/http, but for those that speak of a connection.
func appendHeader(head []byte, header http.Header, failed func(error) error) ([]byte, error) {
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if isFraming(http1.Field{Name: []byte(name)}) {
			continue
		}
		for _, v := range header[name] {
			longer, err := http1.AppendField(head, name, v)
			if err != nil {
				if err := failed(err); err != nil {
					return nil, err
				}
				continue
			}
			head = longer
		}
	}
	return http1.AppendEnd(head), nil
}

// bodyOf is a request's body as a session likes it: in memory if it is short, else one that can be read again if the request knows how.
func bodyOf(req *http.Request) io.Reader {
	const short = 64 << 10
	if req.Body == http.NoBody {
		return nil
	}
	// A length of 0 with a body means that it is not known.
	if req.ContentLength > 0 && req.ContentLength <= short {
		data, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err == nil {
			return bytes.NewReader(data)
		}
		return io.MultiReader(bytes.NewReader(data), failing{err})
	}
	if req.GetBody != nil {
		return &rewound{body: req.Body, again: req.GetBody}
	}
	return req.Body
}

// rewound makes a request's GetBody a seek to the start.
type rewound struct {
	body  io.ReadCloser
	again func() (io.ReadCloser, error)
	moved bool
}

func (r *rewound) Read(p []byte) (int, error) {
	r.moved = true
	return r.body.Read(p)
}

func (r *rewound) Close() error { return r.body.Close() }

// Seek goes to the start, and tells where it is only there.
func (r *rewound) Seek(offset int64, whence int) (int64, error) {
	switch {
	case offset != 0 || whence == io.SeekEnd || whence == io.SeekCurrent && r.moved:
		return 0, errors.ErrUnsupported
	case whence == io.SeekCurrent:
		return 0, nil
	}
	body, err := r.again()
	if err != nil {
		return 0, err
	}
	_ = r.body.Close()
	r.body, r.moved = body, false
	return 0, nil
}

// response makes a reply what net/http gives.
func response(m *streamer.Message, req *http.Request) (*http.Response, error) {
	octets := m.Head
	if octets == nil {
		octets = DefaultReplyHead()
	}
	head, n, err := http1.ParseHead(octets, 0)
	if err != nil || !head.IsReply() {
		_ = closeReader(m.Body)
		return nil, &Error{Code: Malformed, At: int64(n), Remote: true, Err: err}
	}
	resp := &http.Response{
		Status: strings.TrimSpace(string(head.StartLine()[min(len(head.Version())+1, len(head.StartLine())):])), StatusCode: head.Status(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: -1, Request: req, Body: http.NoBody,
	}
	for _, f := range head.Fields() {
		resp.Header.Add(string(f.Name), string(f.Unfolded()))
	}
	if m.Body == nil {
		resp.ContentLength = 0
		return resp, nil
	}
	resp.Body = io.NopCloser(m.Body)
	if c, ok := m.Body.(io.ReadCloser); ok {
		resp.Body = c
	}
	return resp, nil
}
