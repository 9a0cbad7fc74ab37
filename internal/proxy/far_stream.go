package proxy

import (
	"context"
	"net"
	"sync"

	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// entrance is where a stream came in.
type entrance interface {
	// routes are those of it now; nil: it was closed.
	routes() *routes
	// forward sends a connection's bytes to the upstreams of its requests. first: what comes next
	// is what the client began with.
	forward(in *sock.Source, first bool)
}

// far is the far end of one stream: it has the lanes of its clients.
type far struct {
	p     *core
	at    entrance
	facts negotiate.Facts
	peer  net.Addr
	open  chan struct{} // closed when stream is set
	// Valid once open is closed:
	stream *streamer.Stream
	count  *meter.Upstream // that of the upstream of the session's URL, whatever calls go where

	mu      sync.Mutex
	lanes   map[uint64]*lane
	clients map[uint64]uint64 // by lane: how many were there before
	relays  sync.WaitGroup
}

func newFar(p *core, at entrance, peer net.Addr) *far {
	return &far{p: p, at: at, peer: peer, open: make(chan struct{}), lanes: map[uint64]*lane{},
		clients: map[uint64]uint64{}}
}

// opens receives the session of the stream, and then the stream.
func (f *far) opens(facts negotiate.Facts) responder.Opened {
	f.facts = facts
	return responder.Opened{Handler: f.serve, Quick: f.serveNow, Stream: func(s *streamer.Stream) {
		f.stream = s
		f.count = f.p.farMeter(f.at.routes().find(f.destination(nil)))
		f.p.isFar.Store(true)
		f.count.Opened(s, f.p.cfg.Clock.Now())
		close(f.open)
	}}
}

// end ends the lanes.
func (f *far) end() {
	f.mu.Lock()
	lanes := f.lanes
	f.lanes = nil
	f.mu.Unlock()
	for _, l := range lanes {
		l.end()
	}
	f.relays.Wait()
	if f.count != nil {
		f.count.Sweep()
	}
}

// serve serves one exchange.
func (f *far) serve(ctx context.Context, x *streamer.Exchange) {
	c, err := parse(x.Message().Head)
	switch {
	case err != nil:
		f.p.cfg.Log.Warn("message of the near proxy", "session", f.facts.Session.String(), "lane", x.Lane(), "err", err)
		return // the stream reports that it failed
	case f.p.isDraining() && c.kind != leave && c.kind != hangUp && c.kind != change && c.kind != shut:
		turnAway(ctx, x, drainingText, c.kind == none)
		return
	case c.kind == none:
		f.p.calls.Add(1)
		defer f.p.calls.Add(-1)
		f.forwardMessage(ctx, x)
		return
	}
	if c.kind == leave || c.kind == hangUp {
		f.leave(ctx, x, c.kind)
		return
	}
	for {
		l := f.lane(x.Lane())
		if l == nil {
			turnAway(ctx, x, noRoomText, false)
			return
		}
		if l.serve(ctx, &c, x) {
			return
		}
	}
}

// serveNow serves an exchange if it is a request that can go to the upstream at once, and need not
// wait for anything.
func (f *far) serveNow(x *streamer.Exchange) bool {
	c, err := parse(x.Message().Head)
	if err != nil || c.kind != whole || c.isLong() || c.isMade() || f.p.isDraining() {
		return false
	}
	f.mu.Lock()
	l := f.lanes[x.Lane()]
	f.mu.Unlock()
	return l != nil && l.serveNow(&c, x)
}

// opened waits for the stream; nil: ctx ended before.
func (f *far) opened(ctx context.Context) *streamer.Stream {
	select {
	case <-f.open:
		return f.stream
	case <-ctx.Done():
		return nil
	}
}

// lane returns the lane of a number; nil beyond their limit, and when the stream is over.
func (f *far) lane(number uint64) *lane {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lanes[number]
	if l == nil && f.lanes != nil && len(f.lanes) < f.p.cfg.MaxConns {
		l = newLane(f, number, 1)
		f.lanes[number] = l
	}
	return l
}

// leave ends the connection of a lane whose last exchange this is. What follows on the lane is
// another connection's, of the same client (hangUp) or of another one (leave), and waits until this
// one has ended. Of two ends whose handlers run in the wrong order, which happens to clients that
// abandon their calls, the later one is for both.
func (f *far) leave(ctx context.Context, x *streamer.Exchange, how messageKind) {
	f.mu.Lock()
	before := f.lanes[x.Lane()]
	if before == nil && len(f.lanes) >= f.p.cfg.MaxConns {
		f.mu.Unlock()
		return // it never had a client
	}
	f.clients[x.Lane()]++
	if f.lanes == nil || before != nil && before.first > x.Number() {
		f.mu.Unlock()
		return
	}
	next := newLane(f, x.Lane(), x.Number()+1)
	next.order.block()
	f.lanes[x.Lane()] = next
	f.mu.Unlock()
	if before != nil {
		before.order.end()
		before.end()
	}
	if s := f.opened(ctx); s != nil && how == leave {
		s.Lane(x.Lane()).Restart()
	}
	next.order.pass(x.Number())
}

// clientsBefore is how many clients a lane had before the present one.
func (f *far) clientsBefore(lane uint64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clients[lane]
}
