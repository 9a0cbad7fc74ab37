package session

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// RoundTripper puts HHFR under an unchanged SOAP client of net/http. It negotiates once per scheme,
// host and port, with the URL of the first SOAP message that goes there. It carries the SOAP POSTs
// that follow over the session. All other requests go through the RoundTripper below it, unchanged
// and at once: those to peers that do not agree, and those that come before that is known, the
// first one included. With Config.RequireHHFR they wait for the session. [RoundTripper.Session]
// waits for it in any case. It is an [http.RoundTripper], safe for concurrent use.
//
// A session that no request has used for Config.Idle is closed, and nothing of its origin stays but
// what Config.Store remembers: the next request begins with that. A request uses it until the body
// of its response is read to its end or closed. One with messages under a guarantee that the peer
// has not taken stays.
//
// The errors of a request are those of [Session.Call]. A stream carries the request to the service
// as net/http has it, without the fields that net/http itself adds, User-Agent and Accept-Encoding,
// and with SOAPAction in this case.
type RoundTripper struct {
	base   http.RoundTripper
	dialer *Dialer
	// elsewhere is a dialer without Config.OfferFields, for origins that only a redirection has
	// named.
	elsewhere *Dialer

	lastType atomic.Pointer[contentType]

	ctx    context.Context // until Close
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	origins  map[string]*originSession
	names    map[urlOrigin]string // of origins, as in origins
	used     list.List            // of *originSession, as their uses ended
	sweeping bool                 // a timer runs, after which sweep closes what is idle
	// ending has, by origin, sessions with a sequence that are being closed. The next one can have
	// the sequence when the channel is closed.
	ending map[string]chan struct{}
	// fallen are origins of which the log has a fall-back from streams, and no stream since.
	fallen map[string]bool
}

// contentType is a value of the field Content-Type.
type contentType struct {
	value  string
	isSOAP bool
}

// NewRoundTripper makes one over base; nil means [http.DefaultTransport]. Config.HTTPClient is not
// used: offers, and messages that fall back to plain SOAP, go through base. The caller must call
// Close in the end. Errors: BadConfig.
func NewRoundTripper(base http.RoundTripper, cfg Config) (*RoundTripper, error) {
	if base == nil {
		base = http.DefaultTransport
	}
	cfg.HTTPClient = &http.Client{
		Transport:     base,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	switch cfg.Idle = cmp.Or(cfg.Idle, DefaultIdle); {
	case cfg.Idle < 0:
		return nil, negotiate.BadConfigf("sessions that may be idle for %v: a time below 0", cfg.Idle)
	case len(cfg.Nodes) > 0:
		return nil, negotiate.BadConfigf("nodes are those of one URL, and a RoundTripper has many")
	}
	d, err := NewDialer(cfg)
	if err != nil {
		return nil, err
	}
	bare := d.cfg
	// a refusal of an offer without OfferFields does not apply to offers with them
	bare.OfferFields, bare.RememberFor = nil, -1
	t := &RoundTripper{
		base:      base,
		dialer:    d,
		elsewhere: &Dialer{bare},
		origins:   map[string]*originSession{},
		names:     map[urlOrigin]string{},
		fallen:    map[string]bool{},
		ending:    map[string]chan struct{}{},
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// RoundTrip sends one request.
func (t *RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if resp, sent, err := t.OverStream(req); sent {
		return resp, err
	}
	if !t.isSOAP(req) {
		return t.base.RoundTrip(req)
	}
	o, session, err := t.session(req)
	if err != nil {
		_ = httpmsg.CloseReader(req.Body)
		return nil, err
	}
	resp, err := t.by(session, req)
	return t.untilRead(o, resp, err)
}

// by sends a request by a session; nil: as plain SOAP.
func (t *RoundTripper) by(session *Session, req *http.Request) (*http.Response, error) {
	switch {
	case session == nil:
		return t.base.RoundTrip(req)
	case session.claim():
		resp, reply, err := session.ask(req.Context(), func(ctx context.Context) (*http.Response, error) {
			return session.asker.RoundTrip(req.WithContext(ctx))
		})
		if err == nil && reply != nil {
			return session.replies.Response(reply, req)
		}
		return resp, err
	case !session.streaming():
		return session.client.Transport.RoundTrip(req) // which has a connection already
	}
	return session.RoundTrip(req)
}

// OverStream sends a request over the stream that its origin has now. sent is false if there is
// none: [RoundTripper.RoundTrip] finds another path.
func (t *RoundTripper) OverStream(req *http.Request) (resp *http.Response, sent bool, err error) {
	if !t.isSOAP(req) {
		return nil, false, nil
	}
	o := t.useStreaming(req.URL)
	if o == nil {
		return nil, false, nil
	}
	resp, err = o.session.RoundTrip(req)
	resp, err = t.untilRead(o, resp, err)
	return resp, true, err
}

// RoundTrip sends a request by [Session.Call].
func (s *Session) RoundTrip(req *http.Request) (*http.Response, error) {
	head, err := s.heads.Head(req)
	if err != nil {
		_ = httpmsg.CloseReader(req.Body)
		return nil, err
	}
	reply, err := s.Call(req.Context(), &streamer.Message{Head: head, Body: httpmsg.BodyOf(req)})
	if err != nil {
		return nil, err
	}
	return s.replies.Response(reply, req)
}

// isSOAP reports whether a request is one that sessions carry.
func (t *RoundTripper) isSOAP(req *http.Request) bool {
	return req.Method == http.MethodPost && req.Body != nil && req.URL != nil &&
		(req.URL.Scheme == "http" || req.URL.Scheme == "https") &&
		(req.Host == "" || req.Host == req.URL.Host) &&
		t.isSOAPType(req.Header.Get("Content-Type")) &&
		(t.dialer.cfg.RequireHHFR || hasShortHead(req))
}

// hasShortHead reports whether the head of a request is as short as those of streams have to be.
// Servers of HTTP may take longer ones.
func hasShortHead(req *http.Request) bool {
	length, fields := 64+3*len(req.URL.Path)+len(req.URL.RawQuery), 8 // at most
	for name, values := range req.Header {
		for _, v := range values {
			length += len(name) + len(v) + len(": \r\n")
			fields++
		}
	}
	return length <= http1.DefaultHeadLimit && fields <= http1.MaxFields
}

// isSOAPType reports whether a Content-Type is that of an envelope. The requests of a program
// mostly have the same one.
func (t *RoundTripper) isSOAPType(value string) bool {
	last := t.lastType.Load()
	if last == nil || last.value != value {
		last = &contentType{value, soap.ParseContentType(value).Version() != soap.None}
		t.lastType.Store(last)
	}
	return last.isSOAP
}

// IsElsewhere reports whether a redirection has led a request to another origin than that of the
// original request. Credentials for one origin are not meant for the other. A request whose origin
// cannot be found counts as such.
func IsElsewhere(req *http.Request) bool {
	if req.Response == nil {
		return false
	}
	first := req
	for first.Response != nil {
		if first = first.Response.Request; first == nil {
			return true
		}
	}
	return negotiate.Origin(first.URL) != negotiate.Origin(req.URL)
}

// Session returns the session of an origin, such as "http://host:80", and false if there is none.
// It waits for one that is being negotiated.
func (t *RoundTripper) Session(origin string) (*Session, bool) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, false
	}
	t.mu.Lock()
	o := t.origins[negotiate.Origin(u)]
	t.mu.Unlock()
	if o == nil {
		return nil, false
	}
	<-o.done
	return o.session, o.session != nil
}

// Close ends all sessions, and waits for what they run. It is idempotent.
func (t *RoundTripper) Close() error {
	t.mu.Lock()
	t.closed = true
	t.cancel()
	origins := slices.Collect(maps.Values(t.origins))
	t.mu.Unlock()
	var errs []error
	for _, o := range origins {
		<-o.done
		if o.session != nil {
			errs = append(errs, o.session.Close())
		}
	}
	t.wait.Wait()
	return errors.Join(errs...)
}
