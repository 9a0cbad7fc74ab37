package proxy

import (
	"context"
	"net"
	"sync"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// far is the far end of one stream: it has the lanes of its clients.
type far struct {
	p     *Proxy
	facts negotiate.Facts
	open  chan struct{} // closed when stream is there
	// Once open is closed:
	stream *streamer.Stream

	mu    sync.Mutex
	lanes map[uint64]*lane
	tasks sync.WaitGroup // words about upstreams that have closed
}

// serveStream serves a connection that came in where streams are accepted.
func (p *Proxy) serveStream(conn net.Conn) {
	f := &far{p: p, open: make(chan struct{}), lanes: map[uint64]*lane{}}
	p.responder.ServeConn(p.ctx, conn, func(facts negotiate.Facts) negotiate.Opened {
		f.facts = facts
		return negotiate.Opened{Handler: f.serve, Stream: func(s *streamer.Stream) {
			f.stream = s
			close(f.open)
		}}
	})
	f.mu.Lock()
	lanes := f.lanes
	f.lanes = nil
	f.mu.Unlock()
	for _, l := range lanes {
		l.end()
		l.mu.Lock()
		p.calls.end(l.waiting) // the stream is over, and with it all that served the lane
		l.mu.Unlock()
	}
	f.tasks.Wait()
}

// serve serves one exchange.
func (f *far) serve(ctx context.Context, x *streamer.Exchange) {
	c, err := parse(x.Message().Head)
	switch {
	case err != nil:
		f.p.cfg.Log.Warn("message of the near proxy", "session", f.facts.Session.String(), "lane", x.Lane(), "err", err)
		return // the stream says that it failed
	case c.kind == none:
		f.p.calls.begin()
		defer f.p.calls.end(1)
		f.p.forwardMessage(ctx, &f.facts, x)
		return
	}
	l := f.lane(x.Lane())
	switch {
	case l == nil:
		_ = x.Reply(ctx, streamer.NewMessage(line(ended), nil))
	case c.kind == leave:
		l.leave(x.Number())
		if s := f.opened(ctx); s != nil {
			s.Lane(x.Lane()).Restart()
		}
		_ = x.Reply(ctx, &streamer.Message{})
	default:
		l.serve(ctx, c, x)
	}
}

// opened waits for the stream; nil: ctx ended before.
func (f *far) opened(ctx context.Context) *streamer.Stream {
	if !await(ctx, f.open) {
		return nil
	}
	return f.stream
}

// lane gives the lane of a number; nil beyond their limit, and when the stream is over.
func (f *far) lane(number uint64) *lane {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lanes[number]
	if l == nil && f.lanes != nil && len(f.lanes) < f.p.cfg.MaxConns {
		l = newLane(f, number)
		f.lanes[number] = l
	}
	return l
}
