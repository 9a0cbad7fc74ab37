package negotiate

import (
	"context"
	cryptotls "crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// asker carries the requests of a session that go as plain SOAP, the one that asks for a stream among them. Its connections are
// those of the transport that it was made of, but for streams that TLS selects.
type asker struct {
	s     *Session
	base  http.RoundTripper // a copy of the transport, or, of an unknown kind, itself
	alone *http.Transport   // a copy for questions that go alone; nil: there are none
	own   bool              // base is one of net/http, which tells of its connections
}

// ask is what comes of the request that asks, beside its answer.
type ask struct {
	question *negotiation      // that the request is for; nil: it is a call
	conn     net.Conn          // that the request went to
	plain    bool              // it goes without the fields
	declined bool              // it has had a stream that TLS selected
	alone    bool              // it goes by HTTP/1.1, over a connection that nothing else goes over
	n        *negotiation      // its stream is open
	pending  *streamer.Pending // for the reply that comes by an upgraded connection
	reply    *streamer.Message // that came by a stream of TLS
	invited  *invitation       // of an answer
	refused  error             // why there will be no stream
	passing  bool              // another time it may be otherwise
	portal   bool              // it is the answer of a portal, maybe
}

type askKey struct{}

func newAsker(s *Session, transport http.RoundTripper) *asker {
	if transport == nil {
		transport = http.DefaultTransport
	}
	a := &asker{s: s, base: transport}
	t, ok := transport.(*http.Transport)
	if !ok {
		return a
	}
	a.own = true
	own := t.Clone()
	a.base = own
	defer func() { a.alone = oneByOne(own) }()
	if s.url.Scheme != "https" || t.DialTLS != nil { //nolint:staticcheck // who set it, dials by it
		return a
	}
	h2 := speaksH2(t)
	own.Protocols = new(http.Protocols)
	own.Protocols.SetHTTP1(true)
	own.Protocols.SetHTTP2(h2)
	own.TLSNextProto = map[string]func(string, *cryptotls.Conn) http.RoundTripper{
		Protocol: func(_ string, conn *cryptotls.Conn) http.RoundTripper { return &selected{a: a, conn: conn} },
	}
	if t.DialTLSContext != nil {
		return a
	}
	dial := dialerOf(t)
	config := t.TLSClientConfig
	if config == nil {
		config = &cryptotls.Config{}
	}
	config = config.Clone()
	if config.ClientSessionCache == nil {
		config.ClientSessionCache = cryptotls.NewLRUClientSessionCache(0)
	}
	own.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		cfg := config.Clone()
		cfg.NextProtos = []string{"http/1.1"}
		k, ok := ctx.Value(askKey{}).(*ask)
		if h2 && (!ok || !k.alone) {
			cfg.NextProtos = []string{"h2", "http/1.1"}
		}
		if AsksByALPN(ctx) {
			cfg.NextProtos = slices.Insert(cfg.NextProtos, 0, Protocol)
		}
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(addr)
		}
		return handshake(ctx, dial, network, addr, cfg, t.TLSHandshakeTimeout)
	}
	return a
}

// oneByOne is a copy of a transport that uses no connection twice, and speaks HTTP/1.1.
func oneByOne(t *http.Transport) *http.Transport {
	t = t.Clone()
	t.DisableKeepAlives, t.ForceAttemptHTTP2 = true, false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	delete(t.TLSNextProto, "h2")
	return t
}

// AsksByALPN is for the DialTLSContext of an [http.Transport] that a client of [Config].HTTPClient has: it reports whether a connection is
// for a request that asks for a stream. Then [Protocol] may be offered before what HTTP has, and where the server selects it, the *tls.Conn itself
// is to be returned.
func AsksByALPN(ctx context.Context) bool {
	k, ok := ctx.Value(askKey{}).(*ask)
	return ok && !k.plain && !k.declined
}

func handshake(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), network, addr string, cfg *cryptotls.Config, within time.Duration) (net.Conn, error) {
	raw, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if within > 0 {
		limited, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		ctx = limited
	}
	conn := cryptotls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// speaksH2 reports whether a transport would speak HTTP/2 to who selects it.
func speaksH2(t *http.Transport) bool {
	switch {
	case t.Protocols != nil:
		return t.Protocols.HTTP2()
	case t.TLSNextProto != nil:
		return t.TLSNextProto["h2"] != nil
	}
	return t.ForceAttemptHTTP2 || t.TLSClientConfig == nil && t.DialContext == nil && t.Dial == nil //nolint:staticcheck // as above
}

func dialerOf(t *http.Transport) func(context.Context, string, string) (net.Conn, error) {
	if t.DialContext != nil {
		return t.DialContext
	}
	return func(ctx context.Context, _, addr string) (net.Conn, error) { return tcp.Transport{}.Dial(ctx, addr) }
}

// RoundTrip implements [http.RoundTripper].
func (a *asker) RoundTrip(req *http.Request) (*http.Response, error) {
	asking, ok := req.Context().Value(askKey{}).(*ask)
	if !ok || Origin(req.URL) != Origin(a.s.url) { // a redirection elsewhere
		return a.base.RoundTrip(req)
	}
	for {
		resp, err := a.try(asking, req)
		again := asking.again(req, resp, err)
		if again == nil {
			return resp, err
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		req = again
	}
}

// try sends the request once.
func (a *asker) try(asking *ask, req *http.Request) (*http.Response, error) {
	if asking.plain {
		return a.base.RoundTrip(req)
	}
	fields := req.Header.Clone()
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { a.got(asking, fields, info.Conn) }}
	out := req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
	out.Header = fields
	if fields == nil {
		out.Header = http.Header{}
		fields = out.Header
	}
	stages, err := a.stages(req.Context())
	if err != nil {
		return nil, err
	}
	fields[Field] = []string{askField(stages)} // in this case, which Set would change
	resp, err := a.by(asking).RoundTrip(out)
	if err != nil {
		return nil, err
	}
	return a.answered(asking, req, resp)
}

// by is what a request that asks goes by.
func (a *asker) by(k *ask) http.RoundTripper {
	if k.alone && a.alone != nil {
		return a.alone
	}
	return a.base
}

// stages are those that this end asks for.
func (a *asker) stages(ctx context.Context) (uint64, error) {
	cfg := &a.s.cfg.Stream
	coder, err := a.s.cfg.Coders(ctx, CoderSpec{Representation: 1, Limits: cfg.Limits})
	if err != nil {
		return 0, err
	}
	return coder.Stages() &^ cfg.Without, nil
}

// got has the request ask for an upgrade of its connection, if that can be: before anything of it is written.
func (a *asker) got(k *ask, h http.Header, conn net.Conn) {
	k.conn = conn
	if c, ok := conn.(*cryptotls.Conn); ok && c.ConnectionState().NegotiatedProtocol != "" && c.ConnectionState().NegotiatedProtocol != "http/1.1" {
		return
	}
	if !a.own {
		return
	}
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", Protocol)
}

// answered takes the answer to the request that asks.
func (a *asker) answered(asking *ask, req *http.Request, resp *http.Response) (*http.Response, error) {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return a.upgraded(asking, req, resp)
	case asking.n != nil: // selected
		return resp, nil
	case resp.StatusCode == http.StatusBadRequest, resp.StatusCode == http.StatusUpgradeRequired, resp.StatusCode == http.StatusNotImplemented:
		asking.refused = fmt.Errorf("a request that asks for a stream is answered with HTTP status %d", resp.StatusCode)
	default:
		asking.portal = mayBePortal(resp)
		asking.passing = asking.portal || resp.StatusCode >= http.StatusBadGateway && resp.StatusCode <= http.StatusGatewayTimeout
		asking.refused = errors.New("the answer to the first call offers no stream")
		if value := resp.Header.Get(Field); value != "" {
			i, err := parseInvitation(value)
			if asking.passing = err == nil; asking.passing && i.Token != nil {
				asking.invited, asking.refused = i, nil
			}
			resp.Header.Del(Field) // its token is nobody else's
		}
	}
	return resp, nil
}

// upgraded makes a stream of a connection that was upgraded.
func (a *asker) upgraded(asking *ask, req *http.Request, resp *http.Response) (*http.Response, error) {
	rest, ok := resp.Body.(io.ReadWriteCloser)
	conn := asking.conn
	if !ok || conn == nil || !hasToken(resp.Header, "Upgrade", Protocol) {
		_ = resp.Body.Close()
		return nil, errors.New("status 101 that nobody asked for")
	}
	n := asking.question
	if n == nil {
		n = a.s.negotiation()
	}
	address := portOf(n.url)
	if i, err := parseInvitation(resp.Header.Get(Field)); err == nil && i.Address != "" {
		address = i.Address
	}
	ctx, cancel := context.WithTimeout(req.Context(), a.s.cfg.Timeout)
	defer cancel()
	p, err := n.upgraded(ctx, &sharedConn{restConn: restConn{conn, rest}}, req.URL, address, req.Method != http.MethodOptions)
	if err != nil {
		return nil, &Error{Code: FateUnknown, At: -1, Err: err}
	}
	asking.n, asking.pending = n, p
	if asking.question == nil {
		n.tried(FirstCall, nil)
		a.s.begin(n)
	}
	return synthetic(req), nil
}

// synthetic stands for a reply that comes by a stream.
func synthetic(req *http.Request) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: req}
}

// restConn is a connection that net/http has read ahead of.
type restConn struct {
	net.Conn
	rest io.Reader
}

// Read reads what was read ahead, and then the rest.
func (c *restConn) Read(p []byte) (int, error) { return c.rest.Read(p) }

// NetConn is the connection.
func (c *restConn) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the direction, where the connection can.
func (c *restConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// sharedConn is a connection that a stream has behind HTTP, and knows how much of it.
type sharedConn struct {
	restConn
	sent, received atomic.Int64
}

// Read implements [net.Conn].
func (c *sharedConn) Read(p []byte) (int, error) {
	n, err := c.restConn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// Write implements [net.Conn].
func (c *sharedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// Carried is how much the stream has written, and read, in bytes.
func (c *sharedConn) Carried() (sent, received int64) { return c.sent.Load(), c.received.Load() }

// again is the request to be sent once more, without asking: where the answer says that nothing else is wrong with it, and it
// can be. nil: the answer counts.
func (k *ask) again(req *http.Request, resp *http.Response, err error) *http.Request {
	switch {
	case k.plain || k.n != nil || req.Context().Err() != nil:
		return nil
	case k.question != nil:
		return nil
	case err != nil && k.conn == nil: // nobody was there
		return nil
	case err != nil:
		k.refused = fmt.Errorf("no answer to a request that asks for a stream: %w", withoutURL(err))
		if !isSafe(req.Method) {
			return nil
		}
		k.plain = true
	case resp.StatusCode == http.StatusUpgradeRequired, k.refused != nil && resp.StatusCode != http.StatusOK && isSafe(req.Method):
		k.plain = true
	default:
		return nil
	}
	next := req.Clone(req.Context())
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return nil
		}
		body, err := req.GetBody()
		if err != nil {
			return nil
		}
		next.Body = body
	}
	return next
}

func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions || method == http.MethodTrace
}

// unusable is why nothing went over a stream that TLS selected. It has net/http forget the connection, and send the request over
// another, as that of a connection of HTTP/2 that is over.
type unusable struct{ err error }

func (e *unusable) Error() string {
	return fmt.Sprintf("the stream that TLS selected is of no use: %v", e.err)
}

// Unwrap is why.
func (e *unusable) Unwrap() error { return e.err }

// IsHTTP2NoCachedConnError is what net/http goes by.
func (e *unusable) IsHTTP2NoCachedConnError() {}

// selected is a connection on which TLS selected streams. The request that asks goes over it, and any other that gets it.
type selected struct {
	a    *asker
	conn *cryptotls.Conn
	once sync.Once
	n    *negotiation
	err  error
}

// RoundTrip implements [http.RoundTripper].
func (t *selected) RoundTrip(req *http.Request) (*http.Response, error) {
	asking, ok := req.Context().Value(askKey{}).(*ask)
	if ok {
		asking.declined = true // the next connection is one of HTTP
	}
	t.once.Do(func() { t.n, t.err = t.open(req) })
	switch {
	case t.err != nil:
		return nil, &unusable{t.err}
	case isDone(t.n.stream):
		return nil, &unusable{errors.New("it has ended")}
	case ok && asking.question != nil:
		return synthetic(req), t.met(req.Context(), asking)
	}
	head, err := RequestHead(req)
	if err != nil {
		_ = closeReader(req.Body)
		return nil, err
	}
	reply, err := t.n.stream.Lane(0).Call(req.Context(), &streamer.Message{Head: head, Body: bodyOf(req)})
	switch {
	case errors.Is(err, &streamer.Error{Code: streamer.Unsent}):
		return nil, &unusable{err}
	case err != nil:
		return nil, err
	case !ok:
		return Response(reply, req)
	}
	asking.n, asking.reply = t.n, reply
	return synthetic(req), nil
}

// met waits until it is clear that the peer takes the session.
func (t *selected) met(ctx context.Context, asking *ask) error {
	select {
	case <-t.n.stream.Met():
		asking.n = t.n
		return nil
	case <-t.n.stream.Done():
		return &unusable{t.n.stream.Err()}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open begins the stream: it is a first contact with the service that the request is for.
func (t *selected) open(req *http.Request) (*negotiation, error) {
	n := t.a.s.negotiation()
	asking, _ := req.Context().Value(askKey{}).(*ask)
	if asking != nil && asking.question != nil {
		n = asking.question
	}
	target := *req.URL
	target.RawQuery, target.Fragment, target.User, target.RawPath = "", "", nil, ""
	facts := n.plainFacts(newSessionID(), "tls", portOf(n.url))
	facts.Path = pathOf(&target)
	n.transport, n.address = facts.Transport, t.conn.RemoteAddr().String()
	ctx := context.WithoutCancel(req.Context())
	cfg, err := n.streamConfig(ctx, &facts)
	if err != nil {
		_ = t.conn.Close()
		return nil, err
	}
	early := streamer.EarlyLimits
	cfg.Session, cfg.Target, cfg.Early = facts.Session, target.String(), &early
	if err := n.over(ctx, t.conn, cfg, &facts, t.conn.RemoteAddr().String()); err != nil {
		return nil, err
	}
	if asking == nil || asking.question == nil {
		n.tried(FirstCall, nil)
		t.a.s.begin(n)
	}
	return n, nil
}

// upgraded makes a stream of a connection on which a request for the URL was answered with 101.
func (n *negotiation) upgraded(ctx context.Context, conn net.Conn, u *url.URL, address string, exchange bool) (*streamer.Pending, error) {
	facts := n.plainFacts(SessionID{}, "upgrade", address)
	facts.Path = pathOf(u)
	n.transport, n.address = facts.Transport, address
	cfg, err := n.streamConfig(ctx, &facts)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	stream, p, err := streamer.DialUpgraded(ctx, conn, cfg, exchange)
	if err != nil {
		return nil, err
	}
	hello := stream.Hello()
	facts.Session = stream.Session()
	if hello.Lifetime > 0 {
		facts.Expires = n.dialer.cfg.Clock.Now().Add(time.Duration(min(hello.Lifetime, 1<<31)) * time.Second)
	}
	if n.dialer.cfg.OnSession != nil {
		n.dialer.cfg.OnSession(facts, conn)
	}
	return p, n.opened(ctx, stream, &facts)
}

// claim reports whether the next request is the one that asks for a stream.
func (s *Session) claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fresh || s.asking || s.plain || s.closed {
		return false
	}
	s.asking = true
	return true
}

// isFresh reports whether a call is to ask for a stream, or does so.
func (s *Session) isFresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.undecided()
}

// undecided is isFresh with the lock held.
func (s *Session) undecided() bool {
	return (s.fresh || s.asking || s.joining) && !s.plain && !s.closed
}

// asked takes what came of the request that asked, with its error.
func (s *Session) asked(k *ask, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
	switch {
	case k.n != nil || s.link != nil || s.closed:
		s.fresh = false
	case k.invited != nil:
		s.fresh, s.joining, s.agreed.Why = false, true, "the stream that the answer to the first call names is not open yet"
		s.wait.Go(func() { s.accept(k.invited) })
	case k.refused == nil, errors.Is(err, &Error{Code: Unreachable}): // nobody was there: the next call asks
		s.fresh = true
	case k.passing, err != nil && s.agreed.HHFR: // could tell, or it has had a stream before
		s.fresh, s.agreed.Why = true, k.refused.Error()
	default:
		s.agreed.Tried = append(slices.Clip(s.agreed.Tried), Attempt{Mode: FirstCall, Why: k.refused.Error()})
		s.refusedLocked(k.refused)
	}
}

// askNow asks for a stream beside the calls, in the place of the next one.
func (s *Session) askNow(ctx context.Context) error {
	n := s.negotiation()
	err := n.question(ctx)
	if err == nil {
		s.install(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
	var refused *refusal
	if errors.As(err, &refused) && !refused.passing {
		s.refusedLocked(err)
		return nil
	}
	return err
}

// refusedLocked has the session speak plain SOAP: the peer gave a reason.
func (s *Session) refusedLocked(why error) {
	s.plain, s.agreed.Why = true, why.Error()
	s.cfg.Log.Info("plain SOAP", "url", loggable(s.url), "why", why)
	s.wait.Go(func() {
		s.tell()
		s.rememberBroken(why)
	})
}

// accept opens the stream that an answer named, beside the calls. Where that cannot be, a request of its own may be upgraded
// although the call was not: it has no body, which HAProxy upgrades no request with, and goes by HTTP/1.1.
func (s *Session) accept(i *invitation) {
	n := s.negotiation()
	err := n.try(FirstCall, func() error { return n.invited(s.ctx, i) })
	if err != nil && s.ctx.Err() == nil {
		if by := s.negotiation(); by.upgradedBeside(s.ctx) {
			n, err = by, nil
		}
	}
	if err == nil {
		s.begin(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joining = false
	if err == nil || s.closed {
		return
	}
	s.agreed.Tried = slices.Concat(s.agreed.Tried, n.agreed.Tried)
	var refused *refusal
	if errors.As(err, &refused) && refused.blocked != "" {
		s.agreed.NoStream = refused.blocked
		if s.cfg.OnAgreed == nil { // who would be told otherwise
			s.cfg.Log.Warn(blockedWarning, "url", loggable(s.url), "why", err, "hint", BlockedHint)
		}
	}
	s.refusedLocked(err)
}

// firstReply is the reply to the request that asked, if it comes by a stream.
func (s *Session) firstReply(ctx context.Context, k *ask, err error) (*streamer.Message, error) {
	if err != nil || k.pending == nil {
		return k.reply, err
	}
	reply, err := k.pending.Reply(ctx)
	if err == nil {
		return reply, nil
	}
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		_, err = s.judge(ctx, l, err)
	}
	return nil, err
}

// firstCall sends the request of an HTTP client that asks for a stream.
func (s *Session) firstCall(req *http.Request) (*http.Response, error) {
	k := &ask{}
	resp, err := s.asker.RoundTrip(req.WithContext(context.WithValue(req.Context(), askKey{}, k)))
	s.asked(k, err)
	reply, err := s.firstReply(req.Context(), k, err)
	if err != nil || reply == nil {
		return resp, err
	}
	return Response(reply, req)
}

// CloseIdleConnections ends connections that nothing goes over, if they are the asker's own.
func (a *asker) CloseIdleConnections() {
	if own, ok := a.base.(*http.Transport); ok {
		own.CloseIdleConnections()
	}
}
