package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

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
	first  uint64 // the number of the client's first exchange
	order  *order // over: the lane is another client's now

	mu    sync.Mutex
	up    *serverConn
	calls uint64 // number seen of this client
	lost  bool   // this client's connection carries nothing more
}

// newLane creates the lane of a client whose first exchange has this number.
func newLane(f *far, number, first uint64) *lane {
	return &lane{f: f, number: number, first: first, order: newOrder(first)}
}

// served is a call that waits for its reply.
type served struct {
	l      *lane
	x      *streamer.Exchange
	ctx    context.Context
	method string // empty: a tunnel
	seen   measured
	out    requestMeter
	// unwatch ends the watch on ctx, with which the upstream connection is dropped.
	unwatch func() bool
	// parts are the request and the reply: the call is over with both.
	parts   atomic.Int32
	invalid atomic.Bool // its body is, and it was not sent whole
	// outcome, of a request that may turn the connection into a tunnel where others go by their
	// heads, is closed when becomes, which says whether it does, is valid.
	outcome chan struct{}
	becomes bool
	// Under the mutex of its connection:
	done    chan struct{} // closed when the reply is complete, or will not come; nil: nobody waits
	replied bool
	// Of the relay, until the reply is complete:
	whole bool // the reply is
}

// answered is called once when the reply is complete, or will not come.
func (s *served) answered(up *serverConn) {
	s.decide(false)
	up.mu.Lock()
	s.replied = true
	if s.done != nil {
		close(s.done)
	}
	up.mu.Unlock()
	s.ended()
}

// ended is called for request and reply; the last one ends the call.
func (s *served) ended() {
	if s.parts.Add(-1) > 0 {
		return
	}
	s.x.Count(s.seen.Wire())
	s.seen.Done(s.l.f.p.cfg.Clock.Now(), s.whole)
	s.unwatch()
	s.l.f.p.calls.Add(-1)
	s.l.order.pass(s.x.Number())
	s.x.Release()
}

// serve serves one exchange of the client; false: it is the next client's.
func (l *lane) serve(ctx context.Context, c *controlMessage, x *streamer.Exchange) bool {
	turn := l.order.enter(ctx, x.Number())
	switch {
	case l.order.isOver():
		return false
	case !turn:
		return true
	}
	switch c.kind {
	case whole, rest, tunnel:
		l.call(ctx, c, x) // it passes
		return true
	case change:
		if s := l.f.opened(ctx); s != nil {
			s.Lane(l.number).Restart()
		}
	case shut:
		l.mu.Lock()
		up := l.up
		l.mu.Unlock()
		if up != nil {
			_ = sock.CloseWrite(up.in.Conn)
		}
	}
	l.order.pass(x.Number())
	return true
}

// call forwards a request, or what begins a tunnel. The relay handles its reply, for which no
// goroutine waits here, unless the request may take as long as that.
func (l *lane) call(ctx context.Context, c *controlMessage, x *streamer.Exchange) {
	s := l.begin(ctx, c, x)
	if c.isLong() {
		s.done = make(chan struct{})
	}
	defer s.ended()
	up, err := l.join(s, c)
	switch {
	case err != nil:
		l.refuse(c, s, err)
		s.ended()
		return
	case up == nil:
		_ = x.Reply(ctx, streamer.NewMessage(line(ended), nil))
		s.ended()
		return
	}
	up.sending.Add(1)
	if c.isLong() {
		l.sendLong(up, c, s)
	} else {
		l.send(up, c, s)
	}
}

// begin detaches an exchange that waits for its reply.
func (l *lane) begin(ctx context.Context, c *controlMessage, x *streamer.Exchange) *served {
	l.f.p.calls.Add(1)
	x.Detach()
	s := &served{l: l, x: x, ctx: ctx}
	s.unwatch = context.AfterFunc(ctx, l.drop) // a near end that abandons one exchange abandons the client
	s.parts.Store(2)
	if c.kind != tunnel {
		s.method = string(c.head.Method())
	}
	if l.f.at.routes().areByHead() && c.mayBecomeTunnel() {
		s.outcome = make(chan struct{})
	}
	return s
}

// decide says whether the reply to a request makes the connection a tunnel; only the first time
// counts.
func (s *served) decide(becomes bool) {
	if s.outcome != nil && !s.isDecided() {
		s.becomes = becomes
		close(s.outcome)
	}
}

func (s *served) isDecided() bool {
	select {
	case <-s.outcome:
		return true
	default:
		return false
	}
}

// mayBecomeTunnel reports whether the reply to a request may make the connection one.
func (c *controlMessage) mayBecomeTunnel() bool {
	if c.kind == tunnel {
		return false
	}
	_, upgrade := c.head.Get("Upgrade")
	return upgrade || string(c.head.Method()) == http.MethodConnect
}

// serveNow forwards a request that is whole as call does, without waiting; it is false, with
// nothing done, if the lane has no connection for it, or it is not its turn.
func (l *lane) serveNow(c *controlMessage, x *streamer.Exchange) bool {
	if !l.order.isTurn(x.Number()) {
		return false
	}
	s, up := l.rejoin(c, x)
	if s == nil {
		return false
	}
	up.sending.Add(1)
	now := sock.EagerWriter{To: up.out}
	err := l.write(&now, c, s)
	if len(now.Rest) == 0 {
		l.sent(up, s, err)
		s.ended()
		return true
	}
	go func() {
		defer s.ended()
		if _, bad := up.out.Write(now.Rest); bad != nil {
			err = errors.Join(errUntaken, bad)
		}
		l.sent(up, s, err)
	}()
	return true
}

// rejoin makes a call wait for its reply on the connection that the lane has; nil: it has none that
// leads to the upstream of the call.
func (l *lane) rejoin(c *controlMessage, x *streamer.Exchange) (*served, *serverConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	up, r := l.up, l.f.at.routes()
	if l.lost || up == nil || up.to == nil || up.isOver() || r == nil || r.take(&c.head) != up.to {
		return nil, nil
	}
	s := l.begin(x.Context(), c, x)
	l.calls++
	s.seen.begin(l.f.p.farMeter(up.to), l.f.p.cfg.Clock, l.f.peer)
	up.enqueue(s) // which is over only under l.mu
	return s, up
}

// sendLong sends a request that may stay open for long. It must not keep the handler when the
// upstream is gone.
func (l *lane) sendLong(up *serverConn, c *controlMessage, s *served) {
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		l.send(up, c, s)
	}()
	<-s.done
	select {
	case <-sent:
	case <-s.ctx.Done():
	case <-up.ctx.Done():
	}
}

// isLong reports whether a request has a body that is long, or of unknown length.
func (c *controlMessage) isLong() bool {
	if c.kind != whole || c.isMade() {
		return c.kind != whole
	}
	f, err := http1.RequestFraming(&c.head)
	return err != nil || f.Length > inlineBody
}

// join makes a call wait for its reply on the connection of the lane to the upstream of the call,
// which is opened if need be. It is nil if the client's connection is over.
func (l *lane) join(s *served, c *controlMessage) (*serverConn, error) {
	goesOn := c.kind == tunnel && l.becameTunnel(s.ctx)
	l.mu.Lock()
	l.calls++
	up, lost, first := l.up, l.lost, l.calls == 1
	to, err := l.routeLocked(c, goesOn)
	s.seen.begin(l.f.p.farMeter(to), l.f.p.cfg.Clock, l.f.peer)
	moves := err == nil && up != nil && up.to != to
	joined := !lost && err == nil && up != nil && !moves && up.enqueue(s)
	if moves {
		l.up = nil // it has nothing to report any more
	}
	l.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case lost:
		to.left()
		return nil, nil
	case joined:
		to.left()
		return up, nil
	case moves:
		up.finish(s.ctx)
		up.close()
	case up != nil:
		up.close() // it ended between two calls; nothing of this one is written yet
	}
	if to == nil {
		up, err = l.f.openTunnel(first)
	} else if up, err = to.open(s.ctx, s.method == ""); err != nil {
		to.reach.failed(err)
	}
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

// becameTunnel reports whether the request before what the client sends now has made the connection
// a tunnel, and waits until that is known. Without routes there is no need.
func (l *lane) becameTunnel(ctx context.Context) bool {
	l.mu.Lock()
	up := l.up
	l.mu.Unlock()
	if up == nil {
		return false
	}
	_, last := up.ends()
	if last == nil || last.outcome == nil {
		return false
	}
	select {
	case <-last.outcome:
		return last.becomes
	case <-ctx.Done():
		return false
	}
}

// routeLocked returns the upstream of a call, which the caller leaves; nil: the routes of the front
// are for the requests that a tunnel may have, if it does not go on with one. Errors: NoRoute.
func (l *lane) routeLocked(c *controlMessage, goesOn bool) (*upstream, error) {
	for l.f.p.ctx.Err() == nil {
		r := l.f.at.routes()
		var to *upstream
		switch {
		case c.kind != tunnel:
			if to = r.take(&c.head); to == nil {
				return nil, l.f.p.noRoute(destination(&c.head))
			}
		case goesOn && l.up != nil:
			to = l.up.to
		default:
			if to = r.only(); to == nil {
				return nil, nil
			}
		}
		if to.use.enter() {
			return to, nil
		}
	}
	return nil, &Error{Code: Closed}
}

// send writes a message to the upstream. The reader of the reply sees a failure.
func (l *lane) send(up *serverConn, c *controlMessage, s *served) {
	l.sent(up, s, l.write(up.out, c, s))
}

// write writes a message, which is for the upstream.
func (l *lane) write(to io.Writer, c *controlMessage, s *served) error {
	s.seen.since = s.seen.clock.Now() // the upstream was waited for
	s.out = requestMeter{to: to, head: &c.head, x: s.x, measured: &s.seen}
	if c.isMade() {
		return copyFramed(&s.out, c, s.x.Message(), l.f.p.cfg.MaxBuffer+maxWhole)
	}
	body := l.checked(c)
	err := copyRest(&s.out, c, s.x.Message(), body)
	if err == nil && body != nil && !body.Done() {
		s.invalid.Store(true)
		return errOdd
	}
	return err
}

// checked returns what reads the body of a request that comes as it is, if it must be known where
// that ends: behind it there may be a request for another upstream. nil: it need not.
func (l *lane) checked(c *controlMessage) *http1.Body {
	if c.kind != rest || c.mayBecomeTunnel() || !l.f.at.routes().areByHead() {
		return nil
	}
	f, err := http1.RequestFraming(&c.head)
	if err != nil || f.Kind != http1.Chunked {
		return nil
	}
	return http1.NewBody(f)
}

// sent lets the next message of the client go.
func (l *lane) sent(up *serverConn, s *served, err error) {
	if err != nil && !errors.Is(err, errUntaken) {
		sock.Reset(up.in.Conn) // a request cut short must not look whole
	}
	up.sending.Add(-1)
	l.order.pass(s.x.Number())
}

// refuse reports to the client that there is no upstream.
func (l *lane) refuse(c *controlMessage, s *served, err error) {
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

func (l *lane) lose() *serverConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = true
	return l.up
}
