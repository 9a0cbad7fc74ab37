package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// caller is one client connection at the near end of a lane. One goroutine reads requests and
// begins exchanges, another writes the replies in the order of the requests, unless the reader of
// the stream can (completeNow).
type caller struct {
	p      *Proxy
	l      *link
	number uint64
	client netip.Addr // the zero one: nobody comes again
	// place is the lane as it was found, until its first call; used by the reader alone.
	place  vacancy
	lane   *streamer.Lane
	in     *sock.Source
	way    journey
	out    *sock.StallWriter
	ctx    context.Context
	cancel context.CancelFunc
	// reading ends with ctx, or when the writer takes the source over.
	reading context.Context
	halt    context.CancelFunc
	calls   chan *pendingCall
	// ready holds one when the writer has something to do for the calls: it is not woken when one
	// begins, only to wait for the reply.
	ready chan struct{}
	wake  func()
	now   func() bool      // completeNow
	over  chan upstreamEnd // holds one: the latest
	done  chan struct{}    // holds one: the latest call has its reply
	moves bool             // the next request goes elsewhere; valid once calls is closed
	ended bool             // the client has ended in order, between calls; likewise
	// unwatch ends the watch on a client that has ended its direction; nil: there is none.
	unwatch func()

	completing sync.Mutex       // held by who completes calls: the writer, or the stream's reader
	taken      *pendingCall     // that the stream's reader took, and left to the writer; under completing
	eager      sock.EagerWriter // to the client, for the stream's reader; likewise
	left       bool             // the stream's reader is to take no further call; likewise

	mu       sync.Mutex
	before   uint64 // how many the far end knows the lane to have had before
	begun    uint64 // number of calls begun on the lane
	finished uint64 // number of calls whose replies are complete
	closing  bool   // no further call is begun
	ends     bool   // the connection ends once no call is in progress
}

// pendingCall is a request that waits for its reply, or the begin of a tunnel.
type pendingCall struct {
	method  string // empty: a tunnel
	raw     []byte // all that was read from the client for it, where that is retained
	invalid bool   // its body is, and it was not sent whole; set before it is abandoned
	pending *streamer.Pending
	seen    measured
	out     replyMeter
	err     error // it was not begun: what was to be sent is in the source still

	// decide ends undecided: the final reply is there, so it is known whether the connection is a
	// tunnel.
	undecided context.Context
	decide    context.CancelFunc
	becomes   bool // whether it is; valid once undecided has ended
	interim   bool // an interim reply went to the client; used by the writer alone
	// By who completes the call:
	replied   bool              // the final reply went to the client
	reply     *streamer.Message // that was taken for the writer
	failure   error             // likewise
	delivered bool              // the reply was written, but for what the connection did not take at once
	end       fate              // then
}

// upstreamEnd is why the connection must end once no call is in progress.
type upstreamEnd struct {
	broken bool
	idle   bool // an idle time-out here; it applies only if no call began meanwhile
	calls  uint64
	octets []byte
}

func newCaller(l *link, client netip.Addr, place vacancy, in *sock.Source, way journey) *caller {
	p := l.p
	c := &caller{
		p: p, l: l, number: place.number, client: client, place: place, before: l.clientsBefore(place.number),
		lane: l.stream.Lane(place.number), in: in, way: way,
		out:   p.patient(in.Conn),
		calls: make(chan *pendingCall, pipelined), ready: make(chan struct{}, 1),
		over: make(chan upstreamEnd, 1), done: make(chan struct{}, 1),
	}
	c.wake, c.now, c.eager.To = c.wakeWriter, c.completeNow, c.out
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	c.reading, c.halt = context.WithCancel(c.ctx)
	return c
}

// run serves the connection to its end, or until its next request goes elsewhere: then it reports
// that, and the request is in the source still.
func (c *caller) run() (moves bool) {
	c.l.take(c.number, c)
	var reader sync.WaitGroup
	reader.Go(func() {
		c.read()
		close(c.calls)
		c.wake()
	})
	end := c.write()
	c.cancel()
	c.stopNow()
	for x := range c.calls { // the reader ends now, and must not wait for a slot
		_ = c.giveUp(x)
		x.ended(false)
	}
	reader.Wait()
	if c.unwatch != nil {
		c.unwatch()
	}
	c.p.calls.Add(-int64(c.begun - c.finished)) // no goroutine changes them any more
	switch end {
	case goOn:
	case endInOrder:
		sock.Finish(c.p.ctx, c.in)
	case endBroken:
		sock.Reset(c.in.Conn)
	}
	c.l.take(c.number, nil)
	c.leave(end)
	return end == goOn
}

func closeBody(r io.Reader) {
	if c, ok := r.(io.Closer); ok {
		_ = c.Close()
	}
}

// read reads one request after another from the client.
func (c *caller) read() {
	defer c.in.Watch(c.reading)()
	if c.way.raw {
		c.tunnel()
		return
	}
	for {
		h, n, st, err := readHead(c.reading, c.in, c.p.cfg.Idle, c.p.cfg.Pause, false)
		switch {
		case c.reading.Err() != nil:
			return
		case c.way.isOver(st, &h, c.in):
			c.moves = true
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
	x.seen.look(h, there)
	switch {
	case upgrade:
	case f.Kind == http1.NoBody:
		return c.whole(x, h, n, "\n", nil, 0)
	case f.Kind == http1.Length && f.Length <= int64(len(there)):
		return c.whole(x, h, n, "\n", [][]byte{there[:f.Length]}, int(f.Length))
	}
	own := h.Clone() // what follows may wait
	if f.Kind == http1.Chunked && !upgrade && !expects {
		g, st, release := c.p.gather(c.reading, c.in, n, &own, f)
		defer release()
		if st == stateWhole {
			return c.whole(x, &own, n, g.line(), g.entity(), g.octets)
		}
	}
	return c.open(x, &own, n, f, upgrade, expects)
}

// ended counts the end of a call. ok: its reply went to the client.
func (x *pendingCall) ended(ok bool) {
	if x.pending != nil {
		x.pending.Count(x.seen.Wire())
	}
	x.seen.Done(x.seen.clock.Now(), ok)
}

// newCall creates a call; waits: what comes after it depends on its reply.
func (c *caller) newCall(method string, waits bool) *pendingCall {
	x := &pendingCall{method: method, undecided: c.reading, decide: func() {}}
	x.seen.begin(c.l.u.near, c.p.cfg.Clock)
	x.out = replyMeter{c.out, &x.seen}
	if waits {
		x.undecided, x.decide = context.WithCancel(c.reading)
	}
	return x
}

// whole begins a call whose body of n raw bytes is complete.
func (c *caller) whole(x *pendingCall, h *http1.Head, n int, line string, entity [][]byte, octets int) bool {
	head := withHead(h.Octets, line)
	if sizeOf(entity) <= inlineBody {
		raw := bytes.Clone(c.in.Peek()[:n+octets])
		begin := c.lane.BeginNow
		if len(c.in.Peek()) > len(raw) {
			begin = c.lane.Begin // the client sends several at once, which go together
		}
		c.begin(x, func() (err error) {
			if x.pending, err = begin(c.ctx, streamer.NewMessage(head, joined(entity))); err == nil {
				x.raw = raw
				x.seen.Request(len(raw))
				c.in.Take(len(raw))
			}
			return err
		})
		return x.err == nil
	}
	first := min(len(entity[0]), inlineBody)
	w := c.start(x, head, entity[0][:first])
	if w == nil {
		return false
	}
	entity[0] = entity[0][first:]
	var err error
	for i := 0; i < len(entity) && err == nil; i++ {
		_, err = w.Write(entity[i])
	}
	endWriter(w, err)
	x.seen.Request(n + octets)
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
	x.seen.Request(n)
	c.in.Take(n)
	if expects && !c.continues(x) {
		_ = w.Close()
		return c.behind()
	}
	to := bodyMeter{Writer: w, request: x}
	err := stream(c.reading, c.in, to, http1.NewBody(f), line != restLine && isXML(h, nil))
	switch {
	case err == nil && upgrade:
		return c.decided(x, w)
	case errors.Is(err, errOdd) && c.way.isByHead():
		x.invalid = true
		w.Abort(err)
		c.ended = true
		return false
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
	data, err := c.in.Wait(c.reading, 0, 0)
	switch {
	case len(data) == 0:
		c.clientEnded(err)
	case c.way.isByHead():
		c.ended = true
	default:
		c.tunnel()
	}
	return false
}

// decided waits, where a request may turn the connection into a tunnel, for the outcome. A client
// that does not wait may speak HTTP or something else: what it sends is passed on unchanged, since
// the server may wait for it, or waits if it may be for another upstream.
func (c *caller) decided(x *pendingCall, w *streamer.Writer) bool {
	if err := w.Flush(); err != nil {
		return c.sent(errors.Join(errUntaken, err))
	}
	data, err := c.in.Wait(x.undecided, 0, 0)
	if len(data) > 0 && c.way.isByHead() {
		<-x.undecided.Done()
	}
	switch {
	case c.reading.Err() != nil:
		w.Abort(err)
		return false
	case x.undecided.Err() == nil:
		_ = w.Close()
		return c.behind()
	case x.becomes:
		err = stream(c.reading, c.in, bodyMeter{Writer: w, request: x}, nil, false)
		endWriter(w, err)
		return c.sent(err)
	}
	_ = w.Close()
	return true
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
		x.seen.Drop()
		return
	}
	if x.err = c.introduce(); x.err == nil {
		x.err = send()
	}
	if x.pending != nil {
		x.seen.bound(x.pending)
		x.seen.passed()
	}
	select {
	case c.calls <- x:
		if x.err == nil {
			x.pending.Notify(c.wake, c.now)
		} else {
			c.wake()
		}
	case <-c.ctx.Done():
		_ = c.giveUp(x)
		x.ended(false)
	}
}

// wakeWriter has the writer look for calls that have a reply, or will have none.
func (c *caller) wakeWriter() {
	select {
	case c.ready <- struct{}{}:
	default:
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
	err := stream(c.reading, c.in, bodyMeter{Writer: w, request: x}, nil, false)
	endWriter(w, err)
	c.sent(err)
}
