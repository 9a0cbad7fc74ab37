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
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
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
	// Routes are where requests go; [To] makes one for all of them. Required. With several routes,
	// and after [Proxy.Reroute], what goes plainly is forwarded call by call.
	Routes []Route
	// ListenTo opens the listeners of Routes; nil means TCP.
	ListenTo func(ctx context.Context, addr string) (net.Listener, error)
	// Store and Coders are as in [session.Config]. Required.
	Store  ctxstore.Store
	Coders coders.Func
	// Contract describes the messages of both directions; nil: none does. The partner learns of it
	// by an offer.
	Contract *typed.Contract
	// Common is a context store that near and far proxies share; nil: none. What goes plainly then
	// refers to header blocks in it, and is forwarded call by call.
	Common *unchanging.CommonStore
	// Archive is as in [session.Config] and [responder.Config].
	Archive bool
	// PlainOnly: no upstream is asked for a stream. What goes there may have references.
	PlainOnly bool
	// Schema describes the requests of one kind; nil: nothing does.
	Schema *schema.Schema
	// Transports are offered to upstreams; nil means tls, with the TLS of each, and tcp. An empty
	// map (not nil) means that the proxy is never near, and makes no offers.
	Transports map[string]streamer.Transport
	// Timeout bounds negotiation, and the opening of a connection; 0 means [DefaultTimeout].
	Timeout time.Duration
	// MaxConns, MaxBuffer, Pause, Gather, Silence, HeadTime, Idle and Stall: see the Default
	// constants of these names; 0 means them.
	MaxConns int
	// MaxPerPeer is how many of MaxConns one IP address may have, or one IPv6 network of 64 bits; 0
	// means half of them.
	MaxPerPeer                                    int
	MaxBuffer                                     int
	Pause, Gather, Silence, HeadTime, Idle, Stall time.Duration
	// Stream has limits, sizes and hooks of streams. Messages may exceed its MaxMessage: none is
	// held whole.
	Stream streamer.Config
	// WrapDialed and WrapAccepted wrap connections before anything is read or written (a recorder):
	// those that carry messages over the link, each message once. nil: none.
	WrapDialed, WrapAccepted func(net.Conn) net.Conn
	// OnSession is called for each session, as in [session.Config]; nil: not called.
	OnSession func(negotiate.Facts, net.Conn)
	// Meter counts what passes; nil means one that nobody looks at.
	Meter *meter.Meter
	// Context, if given, answers clients' connections that begin with a request for [ContextPath].
	// If it has a method Drain, [Proxy.Drain] calls that: requests that wait for something end.
	Context http.Handler
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log receives sessions and problems; nil: nothing is logged.
	Log *slog.Logger

	// Dial opens connections to upstreams, other than those of Transports; nil means TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Listen == nil || c.Store == nil || c.Coders == nil || len(c.Routes) == 0:
		return c, badConfig("Listen, Routes, Store and Coders are required")
	case c.MaxConns < 0 || c.MaxPerPeer < 0 || c.MaxBuffer < 0 || c.Pause < 0 || c.Gather < 0 ||
		c.Silence < 0 || c.Idle < 0 ||
		c.HeadTime < 0 || c.Stall < 0 || c.Timeout < 0:
		return c, badConfig("negative bound")
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Pause, c.Gather = cmp.Or(c.Pause, DefaultPause), cmp.Or(c.Gather, DefaultGather)
	c.Silence, c.HeadTime = cmp.Or(c.Silence, DefaultSilence), cmp.Or(c.HeadTime, DefaultHeadTime)
	c.Idle, c.Stall = cmp.Or(c.Idle, DefaultIdle), cmp.Or(c.Stall, DefaultStall)
	c.MaxConns, c.MaxBuffer = cmp.Or(c.MaxConns, DefaultMaxConns), cmp.Or(c.MaxBuffer, DefaultMaxBuffer)
	c.MaxPerPeer = cmp.Or(c.MaxPerPeer, max(c.MaxConns/2, 1))
	c.Stream = StreamConfig(c.Stream)
	c.Clock = cmp.Or(c.Clock, clock.Real())
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Meter == nil {
		c.Meter = meter.New(c.Clock.Now())
	}
	if c.ListenTo == nil {
		c.ListenTo = tcp.Transport{}.Listen
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	return c, nil
}

// Proxy runs until it is closed. All methods are safe for concurrent use.
type Proxy struct {
	cfg      Config
	contexts *contextServer
	restorer *unchanging.Restorer // nil: there is no common store
	table    atomic.Pointer[routeTable]
	// routed: routes are in use, so that calls of one connection may go to several upstreams.
	routed atomic.Bool

	ctx  context.Context
	stop context.CancelFunc
	// late ends with ctx, or when a proxy that drains waits for no reply any more.
	late   context.Context
	giveUp context.CancelFunc
	wait   sync.WaitGroup
	close  sync.Once
	failed chan error

	isFar   atomic.Bool  // a stream has come in
	calls   atomic.Int64 // that have no whole reply yet
	refused atomic.Int64 // calls that came while the proxy drains
	raw     rawConns

	conns   accept.Room // of clients
	clients clientConns
	// long has those that hold a long message for a sequence.
	upstreams, long places
	held            budget // what is held of chunked bodies, beyond what each connection may hold
	refusals        accept.Refusals
	draining        atomic.Bool // no further call is to begin

	rerouting sync.Mutex
	closed    bool
}

// Start starts a proxy. On an error the listeners are closed. Errors: BadConfig, those of
// [responder.New], those of Config.ListenTo.
func Start(cfg Config) (*Proxy, error) {
	p, err := newProxy(cfg)
	if err != nil {
		for _, l := range []net.Listener{cfg.Listen, cfg.Streams} {
			if l != nil {
				_ = l.Close()
			}
		}
		return nil, err
	}
	return p, nil
}

func newProxy(cfg Config) (*Proxy, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Proxy{cfg: cfg, failed: make(chan error, maxFailures), upstreams: make(places, cfg.MaxConns),
		long: make(places, maxLong)}
	p.contexts = p.newContexts(cfg.Context)
	p.held.give(maxHeld)
	p.restorer = cfg.Common.Restorer(cfg.Store, cfg.Archive, cfg.Clock, cfg.Log)
	p.conns.Max, p.conns.PerPeer, p.conns.Log = cfg.MaxConns, cfg.MaxPerPeer, cfg.Log
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.late, p.giveUp = context.WithCancel(p.ctx)
	main, err := p.newFront("", cfg.Listen, cfg.Streams)
	if err == nil {
		p.table.Store(&routeTable{fronts: map[string]*front{"": main}})
		p.routed.Store(len(cfg.Routes) > 1 || cfg.Common != nil)
		err = p.reroute(p.ctx, cfg.Routes)
		main.begin() // clients may be there already: they find the routes
	}
	if err != nil {
		p.stop()
		if main != nil {
			_ = p.Close()
		}
		return nil, err
	}
	if p.contexts != nil {
		p.wait.Go(p.contexts.run)
	}
	return p, nil
}

// Failed delivers the error of each listener that failed while the proxy ran.
func (p *Proxy) Failed() <-chan error { return p.failed }

// Addrs are the addresses that listeners are bound to: "http", and for streams "tcp", or "tls" with
// ListenTLS; and those of routes, by [Route.Listen].
func (p *Proxy) Addrs() map[string]net.Addr {
	addrs := map[string]net.Addr{"http": p.cfg.Listen.Addr()}
	for name, f := range p.table.Load().fronts {
		if name != "" {
			addrs[name] = f.listen.Addr()
		} else if f.responder != nil {
			transport, addr := f.streamAddr()
			addrs[transport] = addr
		}
	}
	return addrs
}

// closeListeners stops accepting.
func (p *Proxy) closeListeners() {
	for _, f := range p.table.Load().fronts {
		f.end()
	}
}

// Linked waits for the offers in progress, if any. Then it returns nil if calls to all upstreams go
// over streams, otherwise why they do not. No call waits for that.
func (p *Proxy) Linked(ctx context.Context) error {
	for _, u := range p.table.Load().upstreams {
		if err := u.links.Await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Drain accepts no further connection, refuses further calls, and waits until none is in progress,
// and none has come for a moment in which clients that are still connected may begin one. Then it
// ends their connections: who has sent something by then has a reply. When ctx has a deadline, and
// that is near, clients whose calls are in progress still are told so, unless they have a part of
// the reply. What is forwarded plainly without routes is not looked at: there a call is in progress
// until something has come back for what the client has sent, and that has paused.
func (p *Proxy) Drain(ctx context.Context) {
	all := ctx
	end, bounded := ctx.Deadline()
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-lastWord))
		defer cancel()
	}
	p.draining.Store(true)
	p.closeListeners()
	p.contexts.drain()
	if p.isStill(ctx) {
		p.clients.dismiss()
		p.contexts.dismiss()
	}
	for p.clients.any() && p.cfg.Clock.Sleep(ctx, drainStep) == nil {
	}
	if !bounded || !p.clients.any() {
		return
	}
	for _, u := range p.table.Load().upstreams {
		if l, _ := u.links.Get(); l != nil {
			l.stream.Abort(streamer.CloseGoingAway, "the proxy ends")
		}
	}
	p.clients.abandon()
	p.giveUp()
	for p.clients.any() && p.cfg.Clock.Sleep(all, drainStep) == nil {
	}
}

// isStill waits until no call is in progress or begins; false: ctx was done before.
func (p *Proxy) isStill(ctx context.Context) bool {
	still, refused := p.cfg.Clock.Now(), int64(0)
	for {
		now := p.cfg.Clock.Now()
		// in this order: a call is in progress before what was read of it is taken
		busy := p.clients.ask() || p.calls.Load() > 0 || p.raw.areBusy(now)
		if n := p.refused.Load(); busy || n != refused {
			still, refused = now, n
		}
		if !busy && (now.Sub(still) >= callGap || p.conns.Len() == 0) {
			return true
		}
		if p.cfg.Clock.Sleep(ctx, drainStep) != nil {
			return false
		}
	}
}

// Close accepts nothing more, ends all connections and streams, and waits for all that the proxy
// started. It is idempotent.
func (p *Proxy) Close() error {
	p.close.Do(func() {
		p.rerouting.Lock()
		p.closed = true
		p.rerouting.Unlock()
		p.draining.Store(true)
		p.stop()
		t := p.table.Load()
		for _, f := range t.fronts {
			f.end()
		}
		p.contexts.close()
		for _, u := range t.upstreams {
			u.links.Close()
			u.plain.close()
			u.endSequences()
		}
		for _, f := range t.fronts {
			f.use.retire()
		}
		p.wait.Wait()
	})
	return nil
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
func (p *Proxy) patient(conn net.Conn) *sock.StallWriter {
	return sock.NewStallWriter(conn, p.cfg.Stall, p.cfg.Clock, p.cfg.Log)
}
