package proxy

import (
	"context"
	"errors"
	"sync"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// lane is the far end of one client connection: it owns that client's one upstream connection.
// Requests go up in the order of the exchanges; the upstream's relay returns the replies in the
// order of the calls.
type lane struct {
	f      *far
	number uint64
	order  *order

	mu    sync.Mutex
	up    *upstream
	calls uint64 // number seen of this client
	lost  bool   // this client's connection carries nothing more
}

// newLane creates the lane of a client whose first exchange has this number.
func newLane(f *far, number, first uint64) *lane {
	return &lane{f: f, number: number, order: newOrder(first)}
}

// served is a call that waits for its reply.
type served struct {
	x      *streamer.Exchange
	ctx    context.Context
	method string        // empty: a tunnel
	done   chan struct{} // closed when the reply is complete, or will not come
}

// serve serves one exchange of the client.
func (l *lane) serve(ctx context.Context, c *controlMessage, x *streamer.Exchange) {
	if !l.order.enter(ctx, x.Number()) {
		return
	}
	defer l.order.pass(x.Number())
	switch c.kind {
	case whole, rest, tunnel:
		l.f.p.calls.Add(1)
		defer l.f.p.calls.Add(-1)
		defer context.AfterFunc(ctx, l.drop)() // a near end that abandons one exchange abandons the client
		l.call(ctx, c, x)
	case shut:
		l.mu.Lock()
		up := l.up
		l.mu.Unlock()
		if up != nil {
			_ = sock.CloseWrite(up.in.Conn)
		}
		_ = x.Reply(ctx, &streamer.Message{})
	}
}

// call forwards a request, or what begins a tunnel, and handles its reply.
func (l *lane) call(ctx context.Context, c *controlMessage, x *streamer.Exchange) {
	s := &served{x: x, ctx: ctx, done: make(chan struct{})}
	if c.kind != tunnel {
		s.method = string(c.head.Method())
	}
	up, err := l.join(s)
	switch {
	case err != nil:
		l.refuse(c, s, err)
		return
	case up == nil:
		_ = x.Reply(ctx, streamer.NewMessage(line(ended), nil))
		return
	}
	// A body that may stay open for long must not block the handler when the upstream is gone.
	sent := make(chan struct{})
	up.sending.Add(1)
	send := func() {
		defer close(sent)
		defer l.order.pass(x.Number())
		defer up.sending.Add(-1)
		l.send(up, c, x.Message())
	}
	if c.isLong() {
		go send()
	} else {
		send()
	}
	<-s.done
	select {
	case <-sent:
	case <-ctx.Done():
	case <-up.ctx.Done():
	}
}

// isLong reports whether a request has a body that is long, or of unknown length.
func (c *controlMessage) isLong() bool {
	if c.kind != whole || c.framing != nil {
		return c.kind != whole
	}
	f, err := http1.RequestFraming(&c.head)
	return err != nil || f.Length > inlineBody
}

// join makes a call wait for its reply on the upstream connection of the lane, which is opened if
// need be. It is nil if the client's connection is over.
func (l *lane) join(s *served) (*upstream, error) {
	l.mu.Lock()
	l.calls++
	up, lost := l.up, l.lost
	joined := !lost && up != nil && up.enqueue(s)
	l.mu.Unlock()
	switch {
	case lost:
		return nil, nil
	case joined:
		return up, nil
	case up != nil:
		up.close() // it ended between two calls; nothing of this one is written yet
	}
	up, err := l.f.p.openUpstream(s.ctx, s.method == "")
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.up, l.lost = nil, true
		return nil, err
	}
	if l.lost || s.ctx.Err() != nil { // the client left meanwhile
		up.close()
		return nil, nil
	}
	l.up = up
	up.enqueue(s)
	l.f.relays.Go(func() {
		defer close(up.done)
		l.relay(up)
	})
	return up, nil
}

// send writes a message to the upstream. The reader of the reply sees a failure.
func (l *lane) send(up *upstream, c *controlMessage, m *streamer.Message) {
	conn := l.f.p.patient(up.in.Conn)
	if c.framing != nil {
		entity, err := m.ReadAll(int64(l.f.p.cfg.MaxBuffer) + maxWhole)
		if err != nil {
			sock.Reset(up.in.Conn)
			return
		}
		_, _ = conn.Write(c.framing.AppendTo(c.head.Octets, entity))
		return
	}
	if _, err := conn.Write(c.head.Octets); err != nil {
		return
	}
	if err := copyBody(conn, m.Body, nil); err != nil && !errors.Is(err, errUntaken) {
		sock.Reset(up.in.Conn) // a request cut short must not look whole
	}
}

// refuse reports to the client that there is no upstream.
func (l *lane) refuse(c *controlMessage, s *served, err error) {
	l.f.p.cfg.Log.Warn("upstream", "peer", l.f.p.cfg.Upstream.Host, "err", err)
	var text []byte
	if c.kind != tunnel {
		text = unreachable(err)
	}
	_ = s.x.Reply(s.ctx, streamer.NewMessage(line(ended), text))
}

// drop resets the upstream connection of a client that is gone.
func (l *lane) drop() {
	if up := l.lose(); up != nil {
		up.end()
		sock.Reset(up.in.Conn)
	}
}

// end closes the upstream connection and waits until its last report is sent.
func (l *lane) end() {
	if up := l.lose(); up != nil {
		if up.isBusy() {
			sock.Reset(up.in.Conn)
		}
		up.close()
		<-up.done
	}
}

func (l *lane) lose() *upstream {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = true
	return l.up
}
