package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// caller is one client connection at the near end of a lane. One goroutine reads requests and
// begins exchanges, another writes the replies in the order of the requests.
type caller struct {
	p      *Proxy
	l      *link
	number uint64
	lane   *streamer.Lane
	in     *sock.Source
	ctx    context.Context
	cancel context.CancelFunc
	// reading ends with ctx, or when the writer takes the source over.
	reading context.Context
	halt    context.CancelFunc
	calls   chan *pendingCall
	over    chan upstreamEnd // holds one: the latest

	mu       sync.Mutex
	begun    uint64 // number of calls begun on the lane
	finished uint64 // number of calls whose replies are complete
	closing  bool   // no further call is begun
}

// pendingCall is a request that waits for its reply, or the begin of a tunnel.
type pendingCall struct {
	method  string // empty: a tunnel
	raw     []byte // all that was read from the client for it, where that is retained
	pending *streamer.Pending
	err     error // it was not begun: what was to be sent is in the source still

	// decide ends undecided: the final reply is there, so it is known whether the connection is a
	// tunnel.
	undecided context.Context
	decide    context.CancelFunc
	becomes   bool // whether it is; valid once undecided has ended
	interim   bool // an interim reply went to the client; used by the writer alone
}

// upstreamEnd is why the connection must end once no call is in progress.
type upstreamEnd struct {
	broken bool
	idle   bool // an idle time-out here; it applies only if no call began meanwhile
	calls  uint64
	octets []byte
}

func newCaller(p *Proxy, l *link, number uint64, in *sock.Source) *caller {
	c := &caller{
		p: p, l: l, number: number, lane: l.stream.Lane(number), in: in,
		calls: make(chan *pendingCall, pipelined), over: make(chan upstreamEnd, 1),
	}
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	c.reading, c.halt = context.WithCancel(c.ctx)
	return c
}

// run serves the connection to its end.
func (c *caller) run() {
	c.l.take(c.number, c)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(c.calls)
		c.read()
	})
	inOrder := c.write()
	c.cancel()
	for x := range c.calls { // the reader ends now, and must not wait for a slot
		_ = c.giveUp(x)
	}
	reader.Wait()
	c.p.calls.Add(-int64(c.begun - c.finished)) // no goroutine changes them any more
	if inOrder {
		sock.Finish(c.p.ctx, c.in)
	} else {
		sock.Reset(c.in.Conn)
	}
	c.l.take(c.number, nil)
	c.p.wait.Go(c.leave)
}

// hasCalled reports whether the far end knows this client: it has an upstream connection only for
// clients that have called.
func (c *caller) hasCalled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun > 0
}

// leave notifies the far end, so that it closes the upstream, and releases the lane.
func (c *caller) leave() {
	ctx, cancel := context.WithTimeout(c.p.ctx, leaveTimeout)
	defer cancel()
	if !c.hasCalled() || c.tell(ctx, leave) {
		c.l.leave(c.number)
	}
}

// tell sends a control message without a body, and waits until the far end has accepted it.
func (c *caller) tell(ctx context.Context, k kind) bool {
	m, err := c.lane.Call(ctx, &streamer.Message{Head: line(k)})
	if err == nil {
		closeBody(m.Body)
	}
	return err == nil
}

func closeBody(r io.Reader) {
	if c, ok := r.(io.Closer); ok {
		_ = c.Close()
	}
}

// upstreamEnded notes that the upstream has closed; the writer handles it when no call is in
// progress.
func (c *caller) upstreamEnded(what controlMessage, octets []byte) {
	c.noteEnd(upstreamEnd{broken: what.kind == broken, calls: what.number, octets: octets})
}

func (c *caller) noteEnd(e upstreamEnd) {
	for {
		select {
		case c.over <- e:
			return
		default:
		}
		select {
		case <-c.over: // an older notice
		default:
		}
	}
}

// read reads one request after another from the client.
func (c *caller) read() {
	for {
		h, n, st, err := readHead(c.reading, c.in, c.p.cfg.Idle, c.p.cfg.Pause, false)
		switch {
		case c.reading.Err() != nil:
			return
		case st == stateWhole:
			if !c.request(&h, n) {
				return
			}
		case st == statePaused && len(c.in.Peek()) == 0:
			c.noteEnd(upstreamEnd{idle: true})
		case st == stateEnded && len(c.in.Peek()) == 0:
			c.clientEnded(err)
			return
		default:
			c.tunnel()
			return
		}
	}
}

// clientEnded passes on that the client has ended its direction, or its connection.
func (c *caller) clientEnded(err error) {
	switch {
	case !errors.Is(err, io.EOF):
		c.cancel()
	case c.hasCalled():
		c.tell(c.ctx, shut)
	}
}

// request begins the exchange of one request whose head is in the source; false: there is no next
// one.
func (c *caller) request(h *http1.Head, n int) bool {
	f, err := http1.RequestFraming(h)
	if err != nil {
		c.tunnel()
		return false
	}
	_, upgrade := h.Get("Upgrade")
	upgrade = upgrade || string(h.Method()) == http.MethodConnect
	expects := f.Kind != http1.NoBody && slices.Contains(h.Tokens("Expect"), "100-continue")
	x := c.newCall(string(h.Method()), upgrade || expects)
	there := c.in.Peek()[n:]
	switch {
	case upgrade:
	case f.Kind == http1.NoBody:
		return c.whole(x, h, n, "\n", nil, 0)
	case f.Kind == http1.Length && f.Length <= int64(len(there)):
		return c.whole(x, h, n, "\n", there[:f.Length], int(f.Length))
	case expects:
	case f.Kind == http1.Chunked:
		g, st, release := c.p.gather(c.reading, c.in, n, h, f)
		defer release()
		if st == stateWhole {
			return c.whole(x, h, n, g.line(), g.entity, g.octets)
		}
	}
	return c.open(x, h, n, f, upgrade, expects)
}

// newCall creates a call; waits: what comes after it depends on its reply.
func (c *caller) newCall(method string, waits bool) *pendingCall {
	x := &pendingCall{method: method, undecided: c.reading, decide: func() {}}
	if waits {
		x.undecided, x.decide = context.WithCancel(c.reading)
	}
	return x
}

// whole begins a call whose body of n raw bytes is complete.
func (c *caller) whole(x *pendingCall, h *http1.Head, n int, line string, entity []byte, octets int) bool {
	head := withHead(h.Octets, line)
	if len(entity) <= inlineBody {
		raw := bytes.Clone(c.in.Peek()[:n+octets])
		c.begin(x, func() (err error) {
			if x.pending, err = c.lane.Begin(c.ctx, streamer.NewMessage(head, entity)); err == nil {
				x.raw = raw
				c.in.Take(len(raw))
			}
			return err
		})
		return x.err == nil
	}
	w := c.start(x, head, entity[:inlineBody])
	if w == nil {
		return false
	}
	_, err := w.Write(entity[inlineBody:])
	endWriter(w, err)
	c.in.Take(n + octets)
	return c.sent(err)
}

// open begins a call whose body is sent as it arrives.
func (c *caller) open(x *pendingCall, h *http1.Head, n int, f http1.Framing, upgrade, expects bool) bool {
	line := "\n"
	if upgrade || f.Kind == http1.Chunked {
		line = restLine
	}
	w := c.start(x, withHead(h.Octets, line), nil)
	if w == nil {
		return false
	}
	c.in.Take(n)
	if expects && !c.continues(x) {
		_ = w.Close()
		return c.behind()
	}
	err := stream(c.reading, c.in, w, http1.NewBody(f), line != restLine && isXML(h, nil))
	if err == nil && upgrade {
		return c.decided(x, w)
	}
	endWriter(w, err)
	return c.sent(err)
}

// continues waits for the beginning of a body whose client waits for 100 Continue. It is false if
// the final reply came instead: what the client sends now may be the body nevertheless, or the next
// request.
func (c *caller) continues(x *pendingCall) bool {
	_, _ = c.in.Wait(x.undecided, 0, 0)
	return x.undecided.Err() == nil || c.reading.Err() != nil || x.interim
}

// behind passes on bytes whose meaning is unknown: a body or a request.
func (c *caller) behind() bool {
	if data, err := c.in.Wait(c.reading, 0, 0); len(data) == 0 {
		c.clientEnded(err)
	} else {
		c.tunnel()
	}
	return false
}

// decided waits, where a request may turn the connection into a tunnel, for the outcome. A client
// that does not wait may speak HTTP or something else: what it sends is passed on unchanged.
func (c *caller) decided(x *pendingCall, w *streamer.Writer) bool {
	if err := w.Flush(); err != nil {
		return c.sent(errors.Join(errUntaken, err))
	}
	_, err := c.in.Wait(x.undecided, 0, 0)
	switch {
	case c.reading.Err() != nil:
		w.Abort(err)
		return false
	case x.undecided.Err() != nil && x.becomes:
		err = stream(c.reading, c.in, w, nil, false)
		endWriter(w, err)
		return c.sent(err)
	case x.undecided.Err() != nil:
		_ = w.Close()
		return true
	}
	_ = w.Close()
	return c.behind()
}

// sent continues after a body, according to its outcome; false: there is no next request.
func (c *caller) sent(err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, errOdd):
		c.tunnel()
	case errors.Is(err, errUntaken):
		c.p.cfg.Log.Debug("body not taken", "lane", c.number, "err", err)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.noteEnd(upstreamEnd{calls: c.begun}) // after the reply, if there is one
	case c.reading.Err() == nil:
		c.clientEnded(err)
	}
	return false
}

// start begins a call whose body is written, possibly with its first bytes, and sends these to the
// far end at once. It is nil if that failed; what was to be sent is in the source still.
func (c *caller) start(x *pendingCall, head, first []byte) (w *streamer.Writer) {
	c.begin(x, func() (err error) {
		if x.pending, w, err = c.lane.Start(c.ctx, head, -1); err != nil {
			return err
		}
		if _, err = w.Write(first); err == nil && len(first) == 0 {
			err = w.Flush()
		}
		return err
	})
	if x.err != nil {
		return nil
	}
	return w
}

// begin begins a call. Its err, and errors of the writer, show whether that failed.
func (c *caller) begin(x *pendingCall, send func() error) {
	if x.err = c.enter(); x.err != nil {
		return
	}
	x.err = send()
	select {
	case c.calls <- x:
	case <-c.ctx.Done():
		_ = c.giveUp(x)
	}
}

// enter counts a call, unless the idle connection is about to be closed.
func (c *caller) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return &Error{Code: Closed, At: -1}
	}
	c.begun++
	c.p.calls.Add(1)
	return nil
}

// giveUp abandons a call that nobody waits for any more: a stream that ends waits for calls that
// were not abandoned. The error is that of its outcome.
func (c *caller) giveUp(x *pendingCall) error {
	if x.err != nil {
		return x.err
	}
	m, err := x.pending.Reply(c.ctx)
	if err == nil {
		closeBody(m.Body)
	}
	return err
}

// tunnel sends all further bytes unchanged, and makes all further replies so.
func (c *caller) tunnel() {
	x := c.newCall("", false)
	w := c.start(x, line(tunnel), nil)
	if w == nil {
		return
	}
	err := stream(c.reading, c.in, w, nil, false)
	endWriter(w, err)
	c.sent(err)
}
