package session

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

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

	ctx     context.Context // until Close
	cancel  context.CancelFunc
	wait    sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	origins map[string]*originSession
	names   map[urlOrigin]string // of origins, as in origins
}

// contentType is a value of the field Content-Type.
type contentType struct {
	value  string
	isSOAP bool
}

// urlOrigin is an origin as a URL has it.
type urlOrigin struct{ scheme, host string }

// originSession is the state of one origin.
type originSession struct {
	done    chan struct{} // closed when session and err are set
	session *Session
	err     error
	until   time.Time // when an origin that did not agree is asked again
	named   bool      // named by a request that was made for it; else a redirection led there
	// fellBack: a stream was expected before, and the log has the reason why there was none.
	fellBack bool
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
	if len(cfg.Nodes) > 0 {
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
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// RoundTrip sends one request.
func (t *RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if session := t.Streaming(req); session != nil {
		return session.RoundTrip(req)
	}
	if !t.isSOAP(req) {
		return t.base.RoundTrip(req)
	}
	session, err := t.session(req)
	if err != nil {
		_ = httpmsg.CloseReader(req.Body)
		return nil, err
	}
	if session != nil && session.claim() {
		return session.firstCall(req)
	}
	switch {
	case session == nil:
		return t.base.RoundTrip(req)
	case !session.streaming() && session.asker != nil:
		return session.referring(session.asker).RoundTrip(req) // the request has a connection already
	case !session.streaming():
		return session.referring(t.base).RoundTrip(req)
	}
	return session.RoundTrip(req)
}

// Streaming returns the session whose stream carries a request now, by [Session.RoundTrip]; nil:
// there is none, and [RoundTripper.RoundTrip] finds another path.
func (t *RoundTripper) Streaming(req *http.Request) *Session {
	if !t.isSOAP(req) {
		return nil
	}
	now := t.dialer.cfg.Clock.Now()
	t.mu.Lock()
	o := t.origins[t.originLocked(req.URL)]
	if t.closed || o == nil || !o.settled() || o.isOver(now, t.keep()) {
		o = nil
	}
	t.mu.Unlock()
	if o == nil || o.session == nil || o.session.isFresh() || !o.session.streaming() {
		return nil
	}
	return o.session
}

// RoundTrip sends a request by [Session.Call].
func (s *Session) RoundTrip(req *http.Request) (*http.Response, error) {
	head, err := httpmsg.RequestHead(req)
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
		t.isSOAPType(req.Header.Get("Content-Type"))
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

// originLocked returns the origin of a URL, see [negotiate.Origin].
func (t *RoundTripper) originLocked(u *url.URL) string {
	as := urlOrigin{u.Scheme, u.Host}
	name, ok := t.names[as]
	if !ok {
		name = negotiate.Origin(u)
		t.names[as] = name
	}
	return name
}

// session returns the session of a request's origin; nil for plain SOAP. The offer is made
// concurrently with the requests that come meanwhile.
func (t *RoundTripper) session(req *http.Request) (*Session, error) {
	named, now := !IsElsewhere(req), t.dialer.cfg.Clock.Now()
	t.mu.Lock()
	origin := t.originLocked(req.URL)
	if t.closed {
		t.mu.Unlock()
		return nil, &negotiate.Error{Code: negotiate.Closed, At: -1}
	}
	o, first := t.origins[origin], false
	if o == nil || o.isOver(now, t.keep()) || named && o.isBare() {
		if o != nil && o.session != nil {
			old := o.session
			t.wait.Go(func() { _ = old.Close() })
		}
		fresh := &originSession{done: make(chan struct{}), fellBack: o.hasFallenBack(), named: named}
		t.origins[origin] = fresh
		t.wait.Go(func() { t.dial(fresh, req.URL) })
		o, first = fresh, true
	}
	t.mu.Unlock()
	// With other modes than Explicit the first request waits only for a connection, which it needs
	// itself.
	waits := t.dialer.cfg.RequireHHFR || first && t.dialer.cfg.Mode != negotiate.Explicit
	if !o.settled() && !waits {
		return nil, nil
	}
	select {
	case <-o.done:
		return o.session, o.err
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
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

func (o *originSession) settled() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// isOver reports whether it is time to ask an origin again that does not agree, or whose session
// turned to plain SOAP.
func (o *originSession) isOver(now time.Time, keep time.Duration) bool {
	if !o.settled() {
		return false
	}
	if o.until.IsZero() && o.session != nil && !o.session.streaming() && !o.session.isFresh() {
		o.until = now.Add(o.session.askAgain(keep))
	}
	return !o.until.IsZero() && now.After(o.until)
}

// isBare reports whether an origin that does not agree was asked only without Config.OfferFields.
func (o *originSession) isBare() bool {
	return !o.named && o.settled() && (o.session == nil || !o.session.streaming() && !o.session.isFresh())
}

// keep returns how long an origin is not asked again.
func (t *RoundTripper) keep() time.Duration {
	if t.dialer.cfg.RememberFor < 0 {
		return DefaultRememberFor
	}
	return t.dialer.cfg.RememberFor
}

// askAgain returns when a session that speaks plain SOAP is worth another offer. It is after keep,
// but sooner if the peer only had no space, or may not have been the one that answered.
func (s *Session) askAgain(keep time.Duration) time.Duration {
	s.mu.Lock()
	soon := s.portal || s.agreed.NoRoom()
	s.mu.Unlock()
	if soon {
		return min(keep, maxBackOff)
	}
	return keep
}

// dial negotiates with an origin. It is bounded by the dialer's timeout, not by the request that
// came first.
func (t *RoundTripper) dial(o *originSession, u *url.URL) {
	defer close(o.done)
	bare := *u
	// The query and the user belong to this request, and go with its own head.
	bare.RawQuery, bare.User = "", nil
	dialer := t.dialer
	if !o.named {
		dialer = t.elsewhere
	}
	session, err := dialer.Dial(t.ctx, bare.String())
	now := t.dialer.cfg.Clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		if session != nil {
			t.wait.Go(func() { _ = session.Close() })
		}
		o.err = &negotiate.Error{Code: negotiate.Closed, At: -1}
	case errors.Is(err, &negotiate.Error{Code: negotiate.Unreachable}) && !t.dialer.cfg.RequireHHFR:
		// The request itself finds out, and so does the next one.
		o.until = time.Unix(0, 1)
	case err != nil:
		o.err, o.until = err, time.Unix(0, 1)
		var refused *refusal
		if errors.As(err, &refused) && !refused.mayPass() {
			o.until = now.Add(t.keep())
		}
	default:
		o.session = session
		t.tell(o, u)
		if !session.Agreed().HHFR && !session.isFresh() {
			o.until = now.Add(session.askAgain(t.keep()))
		}
	}
}

// hasFallenBack reports whether a fall-back from streams was logged, and no stream since.
func (o *originSession) hasFallenBack() bool {
	switch {
	case o == nil:
		return false
	case o.session != nil && o.session.Agreed().HHFR && !o.session.streaming():
		return true // the session has logged it
	}
	return o.fellBack
}

// tell logs, once, a fall-back that no caller is told of, and the stream that follows it.
func (t *RoundTripper) tell(o *originSession, u *url.URL) {
	agreed, cfg := o.session.Agreed(), &t.dialer.cfg
	switch {
	case agreed.HHFR && o.fellBack:
		o.fellBack = false
		cfg.Log.Warn("a stream again", "url", loggable(u), "session", agreed.Facts.Session.String())
	case agreed.NoStream != "" && !o.fellBack:
		o.fellBack = true
		cfg.Log.Warn(blockedWarning, "url", loggable(u), "why", agreed.Why, "hint", BlockedHint)
	}
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

// CloseIdleConnections calls the same method of base, where there is one.
func (t *RoundTripper) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.origins {
		if o.settled() && o.session != nil && o.session.asker != nil {
			o.session.asker.CloseIdleConnections()
		}
	}
}

// Close ends all sessions, and waits for what they run. It is idempotent.
func (t *RoundTripper) Close() error {
	t.mu.Lock()
	t.closed = true
	t.cancel()
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
