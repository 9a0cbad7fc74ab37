package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/deflate"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// serverConn is one connection to the upstream.
type serverConn struct {
	in   *sock.Source
	out  *sock.StallWriter
	ctx  context.Context // ends with it
	end  context.CancelFunc
	done chan struct{} // closed when its relay has ended

	p    *core
	to   *upstream // nil: what is sent goes by routes
	once sync.Once // releases its slot

	sending atomic.Int32 // requests that are being written

	mu    sync.Mutex
	calls []*served          // that have no whole reply yet
	wake  context.CancelFunc // wakes the relay when there is one again
	over  bool               // no further one is accepted
	last  bool               // its last reply said that it is the last one; used by the relay alone
	coded deflate.Finder     // of its replies; likewise
}

// open opens a connection for a peer's stream, one of at most MaxConns to all upstreams. Its caller
// uses u, which it leaves when it is closed. Errors: NoRoom, Unreachable; then u is left.
func (u *upstream) open(ctx context.Context, tunnel bool) (*serverConn, error) {
	p := u.p
	if !p.upstreams.enter() {
		u.use.leave()
		return nil, &Error{Code: NoRoom}
	}
	conn, err := u.dial(ctx, tunnel)
	if err != nil {
		p.upstreams.leave()
		u.use.leave()
		return nil, err
	}
	return p.newServerConn(conn, u), nil
}

// openTunnel opens what a tunnel of a peer's stream leads to where requests go by routes: its bytes
// are served like those of a client. first: that client has had no call before.
func (f *far) openTunnel(first bool) (*serverConn, error) {
	if !f.p.upstreams.enter() {
		return nil, &Error{Code: NoRoom}
	}
	return f.p.newServerConn(f.p.within(func(in *sock.Source) { f.at.forward(in, first) }), nil), nil
}

// newServerConn makes one of a connection, and has one of the slots.
func (p *core) newServerConn(conn net.Conn, to *upstream) *serverConn {
	up := &serverConn{in: p.newSource(conn), out: p.patient(conn), p: p, to: to, done: make(chan struct{})}
	up.ctx, up.end = context.WithCancel(p.ctx)
	return up
}

// close closes the connection.
func (up *serverConn) close() {
	up.end()
	_ = up.in.Conn.Close()
	up.once.Do(func() {
		up.p.upstreams.leave()
		up.to.left()
	})
}

// enqueue makes a call wait for its reply; it is false when the connection is over.
func (up *serverConn) enqueue(s *served) bool {
	up.mu.Lock()
	defer up.mu.Unlock()
	if up.over {
		return false
	}
	up.calls = append(up.calls, s)
	if up.wake != nil {
		up.wake()
	}
	return true
}

// finish waits until the calls in progress have their replies.
func (up *serverConn) finish(ctx context.Context) {
	up.mu.Lock()
	var done chan struct{}
	if n := len(up.calls); n > 0 && !up.calls[n-1].replied {
		last := up.calls[n-1]
		if last.done == nil {
			last.done = make(chan struct{})
		}
		done = last.done
	}
	up.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// isOver reports whether it accepts no further call.
func (up *serverConn) isOver() bool {
	up.mu.Lock()
	defer up.mu.Unlock()
	return up.over
}

// ends are the call that waits longest, and the one that began last of those without a whole reply;
// nil: there is none.
func (up *serverConn) ends() (front, latest *served) {
	up.mu.Lock()
	defer up.mu.Unlock()
	if len(up.calls) == 0 {
		return nil, nil
	}
	return up.calls[0], up.calls[len(up.calls)-1]
}

// answer removes the call that waited longest: its reply is about to be whole.
func (up *serverConn) answer() {
	up.mu.Lock()
	defer up.mu.Unlock()
	up.calls = up.calls[1:]
}

// isBusy reports whether a request is not complete, or has no reply: a client that leaves now broke
// off.
func (up *serverConn) isBusy() bool {
	up.mu.Lock()
	defer up.mu.Unlock()
	return len(up.calls) > 0 || up.sending.Load() > 0
}

// relay returns the replies of an upstream connection, and reports how it ended.
func (l *lane) relay(up *serverConn) {
	defer up.in.Watch(up.ctx)()
	var err error
	for err == nil {
		if _, err = up.in.Wait(up.ctx, 0, 0); err != nil {
			break
		}
		if s, _ := up.ends(); s != nil {
			err = l.reply(up, s)
		} else {
			err = up.awaitCall()
		}
	}
	l.over(up, err)
}

// awaitCall waits, when the server sends and no call is in progress, for a call, or the end.
func (up *serverConn) awaitCall() error {
	wait, wake := context.WithCancel(up.ctx)
	defer wake()
	up.mu.Lock()
	asked := len(up.calls) > 0
	up.wake = wake
	up.mu.Unlock()
	for !asked && wait.Err() == nil {
		if len(up.in.Peek()) >= maxServerInitiated {
			<-wait.Done()
		} else if _, err := up.in.Wait(wait, len(up.in.Peek()), 0); err != nil && wait.Err() == nil {
			return err
		}
	}
	up.mu.Lock()
	defer up.mu.Unlock()
	up.wake = nil
	return up.ctx.Err()
}

// reply relays the final reply to a call, or an interim one. Its error says that nothing more
// comes.
func (l *lane) reply(up *serverConn, s *served) error {
	in, cfg := up.in, &l.f.p.cfg
	if s.method == "" {
		return l.stream(up, s, line(tunnel), arriving{})
	}
	h, n, st, err := readHead(up.ctx, in, 0, cfg.Pause, true)
	switch {
	case st == stateEnded:
		return err
	case st != stateWhole:
		return l.stream(up, s, line(tunnel), arriving{})
	}
	if up.to != nil {
		up.to.reach.worked()
	}
	switch {
	case h.Status()/100 == 1 && h.Status() != 101:
		in.Take(n)
		s.seen.Reply(n)
		return s.x.Interim(s.ctx, &streamer.Message{Head: withHead(h.Octets, "\n")})
	}
	f, err := http1.ReplyFraming(&h, s.method)
	if err != nil {
		return l.stream(up, s, line(tunnel), arriving{})
	}
	s.decide(f.Kind == http1.Tunnel)
	s.seen.replies(&h, 0)
	up.last = isLast(&h)
	there := in.Peek()[n:]
	switch {
	case f.Kind == http1.NoBody, f.Kind == http1.Length && f.Length <= int64(len(there)):
		return l.whole(up, s, n, &h, "\n", [][]byte{there[:f.Length]}, int(f.Length))
	}
	h = h.Clone()
	g, st, release := l.f.p.gather(up.ctx, in, n, &h, f)
	defer release()
	switch st {
	case stateWhole:
		return l.whole(up, s, n, &h, g.line(), g.entity(), g.octets)
	case stateOdd:
		return l.stream(up, s, line(tunnel), arriving{})
	case stateFull, statePaused, stateEnded:
	}
	in.Take(n)
	s.seen.Reply(n)
	line := "\n"
	switch f.Kind {
	case http1.Tunnel:
		return l.stream(up, s, withHead(h.Octets, restLine), arriving{})
	case http1.Chunked:
		line = restLineOf(g.size)
	case http1.NoBody, http1.Length, http1.UntilClose:
	}
	a := l.f.p.arriving(&h, f, line, g.size, st)
	a.drained = release
	return l.stream(up, s, withHead(h.Octets, line), a)
}

// whole replies with a body that is complete.
func (l *lane) whole(
	up *serverConn, s *served, n int, h *http1.Head, line string, entity [][]byte, octets int,
) error {
	up.answer()
	defer s.answered(up)
	arrived := s.seen.clock.Now()
	head, entity := partsOf(finderFor(l.f.opened(s.ctx), &up.coded), h, line, entity)
	m := &streamer.Message{Head: head, Body: (*net.Buffers)(&entity)}
	if sizeOf(entity) <= inlineBody {
		m = streamer.NewMessage(head, joined(entity))
	}
	if len(entity) > 0 {
		s.seen.lookAtReply(entity[0])
	}
	s.seen.Reply(n + octets)
	err := s.x.Reply(s.ctx, m)
	s.whole = err == nil
	s.seen.Added(s.seen.clock.Since(arrived))
	up.in.Take(n + octets)
	return err
}

// stream replies with a body as it arrives.
func (l *lane) stream(up *serverConn, s *served, head []byte, a arriving) error {
	w, err := s.x.Respond(s.ctx, head, a.length())
	if err != nil {
		return err
	}
	if a.headGoes(false, len(up.in.Peek())) {
		_ = w.Flush()
	}
	to, end := unframing(w, a.size)
	out := replyBodyMeter{to, &s.seen}
	err = stream(up.ctx, up.in, out, a)
	if errors.Is(err, errOdd) {
		err = stream(up.ctx, up.in, out, arriving{})
	}
	end()
	s.whole = err == nil || a.body != nil && (a.body.Done() || errors.Is(err, io.EOF) && a.body.Close() == nil)
	if err != nil {
		l.lose() // before the near end can know
	}
	up.answer()
	defer s.answered(up)
	endWriter(w, err)
	return err
}

// over reports to the near end how an upstream connection ended: in place of the replies to the
// calls in progress, or by a message of its own, if there is none.
func (l *lane) over(up *serverConn, err error) {
	l.mu.Lock()
	up.mu.Lock()
	up.over = true
	calls, lost, seen := up.calls, l.lost || l.up != up, l.calls
	l.lost = l.lost || len(calls) > 0
	up.mu.Unlock()
	l.mu.Unlock()
	k := ended
	if !errors.Is(err, io.EOF) {
		k = broken
	}
	there := up.in.Peek()
	there = there[:min(len(there), maxServerInitiated)]
	for _, s := range calls {
		switch {
		case up.ctx.Err() != nil:
		case s.invalid.Load():
			_ = s.x.Reply(s.ctx, streamer.NewMessage(line(ended), errorReply(http.StatusBadRequest, invalidText)))
		default:
			_ = s.x.Reply(s.ctx, streamer.NewMessage(line(k), there))
			there = nil
		}
		s.answered(up)
	}
	if len(calls) > 0 || lost || up.ctx.Err() != nil || up.last && k == ended && len(there) == 0 {
		return
	}
	stream := l.f.opened(up.ctx)
	if stream == nil {
		return
	}
	_ = stream.Lane(l.number).Send(up.ctx, streamer.NewMessage(endLine(k, seen, l.f.clientsBefore(l.number)), there))
}
