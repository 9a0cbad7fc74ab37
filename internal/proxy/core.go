package proxy

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/internal/unchanging"
)

// core is what all parts of a proxy share: its configuration, its end, what is in progress, and
// what bounds that.
type core struct {
	cfg      Config
	restorer *unchanging.Restorer // nil: there is no common store
	// routed: routes are in use, so that calls of one connection may go to several upstreams.
	routed atomic.Bool

	ctx  context.Context
	stop context.CancelFunc
	// late ends with ctx, or when a proxy that drains waits for no reply any more.
	late   context.Context
	giveUp context.CancelFunc
	wait   sync.WaitGroup
	failed chan error

	isFar    atomic.Bool  // a stream has come in
	draining atomic.Bool  // no further call is to begin
	calls    atomic.Int64 // that have no whole reply yet
	refused  atomic.Int64 // calls that came while the proxy drains

	listening ownListeners
	conns     accept.Room // of clients
	clients   clientConns
	raw       rawConns
	refusals  accept.Refusals
	// long has those that hold a long message for a sequence.
	upstreams, long places
	held            budget // what is held of chunked bodies, beyond what each connection may hold
}

// newCore is that of a proxy with a complete configuration.
func newCore(cfg Config) *core {
	p := &core{cfg: cfg, failed: make(chan error, maxFailures), upstreams: make(places, cfg.MaxConns),
		long: make(places, maxLong)}
	p.held.give(maxHeld)
	p.restorer = cfg.Common.Restorer(cfg.Store, cfg.Archive, cfg.Clock, cfg.Log)
	p.conns.Max, p.conns.PerPeer, p.conns.Log = cfg.MaxConns, cfg.MaxPerPeer, cfg.Log
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.late, p.giveUp = context.WithCancel(p.ctx)
	return p
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

func (p *core) newSource(conn net.Conn) *sock.Source { return sock.NewSource(conn, p.cfg.Clock) }

// patient writes to an endpoint that may be slow, but not stand still.
func (p *core) patient(conn net.Conn) *sock.StallWriter {
	return sock.NewStallWriter(conn, p.cfg.Stall, p.cfg.Clock, p.cfg.Log)
}

// headTime is the time of a head as a whole, however slowly it comes: waits that last longer end
// like those that pause.
func (p *core) headTime() (ctx context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(p.ctx)
	timer := p.cfg.Clock.AfterFunc(p.cfg.HeadTime, func() { end(sock.ErrPaused) })
	return ctx, func() {
		timer.Stop()
		end(nil)
	}
}

// budget is so many bytes that are left to be held.
type budget struct{ left atomic.Int64 }

// take takes n bytes, if there are as many.
func (b *budget) take(n int) bool {
	if b.left.Add(-int64(n)) < 0 {
		b.give(n)
		return false
	}
	return true
}

func (b *budget) give(n int) { b.left.Add(int64(n)) }
