package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// links opens the session with the proxy behind the upstream, when there is one, and another when it has ended.
type links struct {
	p *Proxy

	mu      sync.Mutex
	current *link
	opening chan struct{} // closed when what is being opened is there, or is not
	why     error         // of the last attempt
	until   time.Time     // plain without asking: the upstream knows hhfr, but is no proxy, or is of another scheme
	closed  bool
}

// link is one session as the near end.
type link struct {
	p       *Proxy
	session *negotiate.Session
	stream  *streamer.Stream

	mu      sync.Mutex
	callers map[uint64]*caller
	free    []uint64
	highest uint64
	ending  bool // its stream takes no further call
}

// errNoPartner is why all goes plain with an end that speaks hhfr but is no proxy.
var errNoPartner = errors.New("the upstream speaks hhfr, but is no proxy")

// get gives the live session, opening one if need be; nil, and why, if all goes plain.
func (ls *links) get(ctx context.Context) (*link, error) {
	if len(ls.p.cfg.Transports) == 0 {
		return nil, nil
	}
	ls.mu.Lock()
	if ls.current != nil && ls.current.alive() {
		defer ls.mu.Unlock()
		return ls.current, nil
	}
	if ls.closed || ls.p.cfg.Clock.Now().Before(ls.until) {
		defer ls.mu.Unlock()
		return nil, cmp.Or(ls.why, errNoPartner)
	}
	wait := ls.opening
	if wait == nil {
		wait = make(chan struct{})
		ls.opening = wait
		if old := ls.current; old != nil {
			ls.p.wait.Go(func() { _ = old.session.Close() })
		}
		ls.current = nil
		ls.p.wait.Go(ls.open)
	}
	ls.mu.Unlock()
	select {
	case <-wait:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.current, ls.why
}

// open makes one attempt.
func (ls *links) open() {
	l, err := ls.p.negotiate()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed && l != nil {
		late := l.session
		ls.p.wait.Go(func() { _ = late.Close() })
		l, err = nil, &Error{Code: Closed, At: -1}
	}
	switch {
	case errors.Is(err, errNoPartner):
		ls.until = ls.p.cfg.Clock.Now().Add(ls.p.cfg.RememberFor)
	case schemeError(err) != nil:
		ls.p.cfg.Log.Warn("upstream", "peer", ls.p.cfg.Upstream.Host, "err", err)
		ls.until = ls.p.cfg.Clock.Now().Add(min(otherScheme, ls.p.cfg.RememberFor))
	}
	ls.current, ls.why = l, err
	close(ls.opening)
	ls.opening = nil
}

// close ends the session; no other is opened.
func (ls *links) close() {
	ls.mu.Lock()
	ls.closed = true
	l := ls.current
	ls.mu.Unlock()
	if l != nil {
		_ = l.session.Close()
	}
}

// negotiate opens a session with the upstream; the error says why there is none.
func (p *Proxy) negotiate() (*link, error) {
	l := &link{p: p, callers: map[uint64]*caller{}}
	var partner atomic.Bool
	transport := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, DialContext: p.dialOffer, DialTLSContext: p.dialSecureOffer,
	}
	defer transport.CloseIdleConnections()
	d, err := negotiate.NewDialer(negotiate.Config{
		HTTPClient: &http.Client{Transport: noting{transport, &partner}}, Transports: p.cfg.Transports, Store: p.cfg.Store, Coders: p.cfg.Coders,
		AllowHost: p.cfg.AllowHost, AllowCleartext: p.cfg.AllowCleartext, RememberFor: p.cfg.RememberFor, Timeout: p.cfg.Timeout,
		Handler: l.serve, WrapConn: p.cfg.WrapDialed, OnSession: p.cfg.OnSession, Stream: p.cfg.Stream, Clock: p.cfg.Clock, Log: p.cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	session, err := d.Dial(p.ctx, p.cfg.Upstream.String())
	if err != nil {
		return nil, err
	}
	agreed := session.Agreed()
	switch {
	case !agreed.HHFR:
		return nil, fmt.Errorf("plain: %s", agreed.Why)
	case !partner.Load():
		_ = session.Close()
		return nil, errNoPartner
	}
	l.session, l.stream = session, session.Stream()
	p.cfg.Log.Info("session", "session", agreed.Facts.Session.String(), "peer", p.cfg.Upstream.Host)
	return l, nil
}

// noting notes whether an answer is that of a proxy.
type noting struct {
	http.RoundTripper
	partner *atomic.Bool
}

// RoundTrip is that of the transport below.
func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.RoundTripper.RoundTrip(r)
	if err == nil {
		n.partner.Store(resp.Header.Get(proxyField) != "")
	}
	return resp, err
}

// retire notes that the stream takes no further call, though it may not be over yet.
func (l *link) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
}

func (l *link) alive() bool {
	l.mu.Lock()
	ending := l.ending
	l.mu.Unlock()
	if ending {
		return false
	}
	select {
	case <-l.stream.Done():
		return false
	default:
		return l.stream.Err() == nil
	}
}

// enter takes a lane that nobody uses.
func (l *link) enter() (number uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) > 0 {
		number = l.free[0]
		l.free = slices.Delete(l.free, 0, 1)
		return number, true
	}
	if l.highest >= uint64(l.p.cfg.MaxConns) {
		return 0, false
	}
	l.highest++ // lane 0 is for messages of ends that speak for themselves
	return l.highest, true
}

// leave gives a lane back, once the far end knows that its client is gone.
func (l *link) leave(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stream.Lane(number).Restart()
	l.free = append(l.free, number)
}

// take has the far end's requests of a lane served by a caller, nil: by nobody any more.
func (l *link) take(number uint64, c *caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c == nil {
		delete(l.callers, number)
		return
	}
	l.callers[number] = c
}

// serve takes what the far end begins: it tells that the upstream has closed while no call was under way.
func (l *link) serve(ctx context.Context, x *streamer.Exchange) {
	c, err := parse(x.Message().Head)
	if err != nil || c.kind != ended && c.kind != broken {
		return
	}
	octets, err := x.Message().ReadAll(pieceOctets)
	if err != nil {
		return
	}
	l.mu.Lock()
	caller := l.callers[x.Lane()]
	l.mu.Unlock()
	if caller != nil {
		caller.upstreamEnded(c, octets)
	}
	_ = x.Reply(ctx, &streamer.Message{})
}
