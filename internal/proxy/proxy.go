// Package proxy is the drop-in pair: two proxies with a thin link between them, in front of systems
// that nobody can change (docs/proxy.md). The near one takes HTTP connections of clients, agrees on
// a session with the far one at its upstream URL, and splits; the far one joins and forwards to its
// own upstream. Heads, bodies and what is no HTTP at all arrive as they left, byte for byte.
// Without agreement, connections are forwarded plainly.
//
// Every [Proxy] is both: far for a peer that asks it for a stream, near for what it sends upstream.
package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
)

// Config configures a [Proxy]. It is copied; what it points to is shared and stays the caller's.
type Config struct {
	// Listen accepts the connections of clients, OPTIONS requests and offers, and streams of near
	// proxies and other peers. Required. The proxy closes it.
	Listen net.Listener
	// ListenTLS, if given, makes Listen take TLS only.
	ListenTLS *tls.Config
	// Streams accepts streams at another address, which answers name then; with ListenTLS it must
	// take TLS as well. nil: that of Listen. The proxy closes it.
	Streams net.Listener
	// NearOnly: requests for a stream, and streams of others, are forwarded like everything else.
	NearOnly bool
	// Admit is as in [responder.Config].
	Admit func(*http.Request) error
	// Advertise is the host that answers name for streams; empty: that of the URL, as the peer
	// names it.
	Advertise string
	// Upstream is where everything goes: an http or https URL. Offers go to its path; clients'
	// targets stay as they are. Required.
	Upstream *url.URL
	// TLS configures connections to https upstreams; nil means the system's roots.
	TLS *tls.Config
	// Store and Coders are as in [session.Config]. Required.
	Store  ctxstore.Store
	Coders coders.Func
	// Transports are offered to the upstream; nil means tls, with TLS, and tcp. An empty map (not
	// nil) means that the proxy is never near, and makes no offers.
	Transports map[string]streamer.Transport
	// AllowHost and AllowCleartext are as in [session.Config].
	AllowHost      []string
	AllowCleartext bool
	// Mode is how sessions with the upstream are opened; empty means [negotiate.Auto].
	Mode negotiate.Mode
	// RememberFor is how long an upstream that did not agree gets no further offer; 0 means
	// session.DefaultRememberFor.
	RememberFor time.Duration
	// Timeout bounds negotiation, and the opening of a connection; 0 means [DefaultTimeout].
	Timeout time.Duration
	// MaxConns, MaxBuffer, Pause, Gather, Silence, Idle and Stall: see the Default constants of
	// these names; 0 means them.
	MaxConns                            int
	MaxBuffer                           int
	Pause, Gather, Silence, Idle, Stall time.Duration
	// Stream has limits, sizes and hooks of streams. Messages may exceed its MaxMessage: none is
	// held whole.
	Stream streamer.Config
	// WrapDialed and WrapAccepted wrap connections before anything is read or written (a recorder):
	// those that carry messages over the link, each message once. nil: none.
	WrapDialed, WrapAccepted func(net.Conn) net.Conn
	// OnSession is called for each session, as in [session.Config]; nil: not called.
	OnSession func(negotiate.Facts, net.Conn)
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log receives sessions and problems; nil: nothing is logged.
	Log *slog.Logger

	// dial opens connections to the upstream; nil means those of TCP.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Listen == nil || c.Store == nil || c.Coders == nil || c.Upstream == nil:
		return c, badConfig("Listen, Upstream, Store and Coders are required")
	case (c.Upstream.Scheme != "http" && c.Upstream.Scheme != "https") || c.Upstream.Hostname() == "":
		return c, badConfig("upstream %q is no http or https URL", c.Upstream.Redacted())
	case c.MaxConns < 0 || c.MaxBuffer < 0 || c.Pause < 0 || c.Gather < 0 || c.Silence < 0 || c.Idle < 0 ||
		c.Stall < 0 || c.Timeout < 0:
		return c, badConfig("negative bound")
	}
	u := *c.Upstream
	u.Fragment = ""
	c.Upstream = &u
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Pause, c.Gather = cmp.Or(c.Pause, DefaultPause), cmp.Or(c.Gather, DefaultGather)
	c.Silence, c.Idle, c.Stall = cmp.Or(c.Silence, DefaultSilence), cmp.Or(c.Idle, DefaultIdle),
		cmp.Or(c.Stall, DefaultStall)
	c.RememberFor = cmp.Or(c.RememberFor, session.DefaultRememberFor)
	c.MaxConns, c.MaxBuffer = cmp.Or(c.MaxConns, DefaultMaxConns), cmp.Or(c.MaxBuffer, DefaultMaxBuffer)
	c.Stream.Limits.MaxExchanges = cmp.Or(c.Stream.Limits.MaxExchanges, maxFlight)
	c.Stream.Limits.MaxMessage = endless
	c.Stream.Proxy = true
	c.Mode = cmp.Or(c.Mode, negotiate.Auto)
	c.Clock = cmp.Or(c.Clock, clock.Real())
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Transports == nil {
		c.Transports = map[string]streamer.Transport{"tls": streamtls.New(c.TLS, nil), "tcp": tcp.Transport{}}
	}
	if c.dial == nil {
		c.dial = new(net.Dialer).DialContext
	}
	return c, nil
}

// Proxy runs until it is closed. All methods are safe for concurrent use.
type Proxy struct {
	cfg       Config
	port      *oneport.Port
	responder *responder.Responder // nil: never far
	offers    http.Handler
	links     Keeper[*link]

	ctx    context.Context
	stop   context.CancelFunc
	wait   sync.WaitGroup
	close  sync.Once
	failed chan error

	calls atomic.Int64 // that have no whole reply yet

	conns accept.Room
	// long has those that hold a body beyond MaxBuffer.
	upstreams, long places
}

// Start starts a proxy. On an error the listeners are closed. Errors: BadConfig, those of
// [responder.New].
func Start(cfg Config) (*Proxy, error) {
	listeners := []net.Listener{cfg.Listen, cfg.Streams}
	p, err := newProxy(cfg)
	if err != nil {
		for _, l := range listeners {
			if l != nil {
				_ = l.Close()
			}
		}
		return nil, err
	}
	if len(p.cfg.Transports) > 0 {
		p.links.Begin()
		p.wait.Go(func() { p.links.Run(p.ctx) })
	}
	p.port = oneport.New(p.cfg.Listen, oneport.Config{
		TLS: p.cfg.ListenTLS, NoStreams: p.cfg.NearOnly, Own: p.own, Silence: p.cfg.Silence, Timeout: p.cfg.Timeout,
		MaxSniffed: p.cfg.MaxConns, MaxPerPeer: p.cfg.MaxConns, Clock: p.cfg.Clock, Log: p.cfg.Log,
	})
	p.wait.Go(func() { p.accept(p.port.HTTP(), p.serveClient) })
	p.wait.Go(func() { p.accept(p.port.Streams(), p.serveStream) })
	if p.cfg.Streams != nil {
		p.wait.Go(func() { p.accept(p.cfg.Streams, p.serveStream) })
	}
	return p, nil
}

func newProxy(cfg Config) (*Proxy, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.Streams != nil {
		cfg.Streams = accept.Steady(cfg.Streams, cfg.Clock, cfg.Log)
	}
	p := &Proxy{cfg: cfg, failed: make(chan error, 3), upstreams: make(places, cfg.MaxConns),
		long: make(places, maxLong)}
	p.conns.Max, p.conns.Log = cfg.MaxConns, cfg.Log
	p.links = Keeper[*link]{
		Open: p.negotiate, Quiet: p.cfg.quiet, FirstBackOff: firstBackOff, MaxBackOff: maxBackOff, Clock: cfg.Clock,
		Told: (&teller{log: cfg.Log, upstream: cfg.Upstream.Host}).tell,
	}
	p.links.Init(errNever)
	p.ctx, p.stop = context.WithCancel(context.Background())
	if cfg.NearOnly {
		return p, nil
	}
	transport, addr := p.streamAddr()
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil, &Error{Code: BadConfig, At: -1, Err: err}
	}
	p.responder, err = responder.New(responder.Config{
		Store: cfg.Store, Coders: cfg.Coders,
		Addresses: map[string]string{transport: net.JoinHostPort(cfg.Advertise, port)}, Admit: cfg.Admit,
		Serve:    func(context.Context, string, *streamer.Exchange) {}, // ServeConn has handlers of its own
		WrapConn: cfg.WrapAccepted, OnSession: cfg.OnSession, Stream: cfg.Stream, MaxSessions: cfg.MaxConns,
		Clock: cfg.Clock, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	p.offers = p.responder.Handler(http.NotFoundHandler())
	return p, nil
}

// Failed delivers the error of each listener that failed while the proxy ran.
func (p *Proxy) Failed() <-chan error { return p.failed }

// Addrs are the addresses that listeners are bound to: "http", and for streams "tcp", or "tls" with
// ListenTLS.
func (p *Proxy) Addrs() map[string]net.Addr {
	addrs := map[string]net.Addr{"http": p.cfg.Listen.Addr()}
	if p.responder != nil {
		transport, addr := p.streamAddr()
		addrs[transport] = addr
	}
	return addrs
}

// streamAddr is the address at which streams are accepted, and their transport.
func (p *Proxy) streamAddr() (transport string, addr net.Addr) {
	transport, addr = "tcp", p.cfg.Listen.Addr()
	if p.cfg.ListenTLS != nil {
		transport = "tls"
	}
	if p.cfg.Streams != nil {
		addr = p.cfg.Streams.Addr()
	}
	return transport, addr
}

// own reports whether a connection that begins like a stream is one of a session that was
// negotiated here, or that more bytes are needed to know. All else is the client's, which may speak
// hhfr with the upstream.
func (p *Proxy) own(ctx context.Context, start []byte) (own, more bool) {
	hello, ok := frame.Opening(start)
	if !ok {
		return false, frame.Incomplete(start)
	}
	return p.responder.Knows(ctx, hello.Session, hello.Token), false
}

// closeListeners stops accepting.
func (p *Proxy) closeListeners() {
	_ = p.port.Close()
	if p.cfg.Streams != nil {
		_ = p.cfg.Streams.Close()
	}
}

// Linked waits for the offer in progress, if any. Then it returns nil if calls go over a stream,
// otherwise why they do not. No call waits for that.
func (p *Proxy) Linked(ctx context.Context) error { return p.links.Await(ctx) }

// Drain accepts no further connection and waits until no call is in progress on a stream, or ctx is
// done. Open connections continue until [Proxy.Close]. Drain does not wait for what is forwarded
// plainly: it has no calls to this package.
func (p *Proxy) Drain(ctx context.Context) {
	p.closeListeners()
	for p.calls.Load() > 0 && p.cfg.Clock.Sleep(ctx, drainStep) == nil {
	}
}

// Close accepts nothing more, ends all connections and streams, and waits for all that the proxy
// started. It is idempotent.
func (p *Proxy) Close() error {
	p.close.Do(func() {
		p.stop()
		p.closeListeners()
		p.links.Close()
		if p.responder != nil {
			_ = p.responder.Close()
		}
		p.wait.Wait()
	})
	return nil
}

// accept serves the connections of a listener, up to their maximum number.
func (p *Proxy) accept(l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if p.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				p.failed <- &Error{Code: Failed, At: -1, Err: fmt.Errorf("%s: %w", l.Addr(), err)}
			}
			return
		}
		leave, ok := p.conns.Enter(conn.RemoteAddr())
		if !ok {
			_ = conn.Close()
			continue
		}
		p.wait.Go(func() {
			defer leave()
			serve(conn)
		})
	}
}

// places is a semaphore.
type places chan struct{}

// enter takes a slot, if one is free.
func (p places) enter() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p places) leave() { <-p }

func (p *Proxy) newSource(conn net.Conn) *sock.Source { return sock.NewSource(conn, p.cfg.Clock) }

// patient writes to an endpoint that may be slow, but not stand still.
func (p *Proxy) patient(conn net.Conn) sock.StallWriter {
	return sock.StallWriter{Conn: conn, Stall: p.cfg.Stall, Clock: p.cfg.Clock, Log: p.cfg.Log}
}
