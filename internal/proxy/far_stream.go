package proxy

import (
	"context"
	"net"
	"sync"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// far is the far end of one stream: it has the lanes of its clients.
type far struct {
	p     *Proxy
	facts negotiate.Facts
	open  chan struct{} // closed when stream is set
	// Valid once open is closed:
	stream *streamer.Stream

	mu     sync.Mutex
	lanes  map[uint64]*lane
	relays sync.WaitGroup
}

// serveStream serves a connection that came in where streams are accepted.
func (p *Proxy) serveStream(conn net.Conn) {
	f := newFar(p)
	defer f.end()
	p.responder.ServeConn(p.ctx, conn, f.opens)
}

func newFar(p *Proxy) *far {
	return &far{p: p, open: make(chan struct{}), lanes: map[uint64]*lane{}}
}

// opens receives the session of the stream, and then the stream.
func (f *far) opens(facts negotiate.Facts) responder.Opened {
	f.facts = facts
	return responder.Opened{Handler: f.serve, Stream: func(s *streamer.Stream) {
		f.stream = s
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
}

// serve serves one exchange.
func (f *far) serve(ctx context.Context, x *streamer.Exchange) {
	c, err := parse(x.Message().Head)
	switch {
	case err != nil:
		f.p.cfg.Log.Warn("message of the near proxy", "session", f.facts.Session.String(), "lane", x.Lane(), "err", err)
		return // the stream reports that it failed
	case c.kind == none:
		f.p.calls.Add(1)
		defer f.p.calls.Add(-1)
		f.p.forwardMessage(ctx, &f.facts, x)
		return
	}
	if c.kind == leave {
		f.leave(x)
		if s := f.opened(ctx); s != nil {
			s.Lane(x.Lane()).Restart()
		}
		_ = x.Reply(ctx, &streamer.Message{})
	} else if l := f.lane(x.Lane()); l != nil {
		l.serve(ctx, &c, x)
	} else {
		_ = x.Reply(ctx, streamer.NewMessage(line(ended), nil))
	}
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

// leave ends the lane of a client whose last exchange this is, and makes it ready for another
// client.
func (f *far) leave(x *streamer.Exchange) {
	f.mu.Lock()
	l := f.lanes[x.Lane()]
	if f.lanes != nil {
		f.lanes[x.Lane()] = newLane(f, x.Lane(), x.Number()+1)
	}
	f.mu.Unlock()
	if l != nil {
		l.order.pass(x.Number())
		l.end()
	}
}
