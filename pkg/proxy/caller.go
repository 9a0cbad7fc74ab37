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
	"github.com/hhfr/hhfr/pkg/streamer"
)

// caller is one client connection at the near end of a lane. One goroutine reads requests and begins exchanges, another writes the replies in the order of the requests.
type caller struct {
	p      *Proxy
	l      *link
	number uint64
	lane   *streamer.Lane
	in     *inlet
	ctx    context.Context
	cancel context.CancelFunc
	// reading ends with ctx, or when the writer takes the inlet over.
	reading context.Context
	halt    context.CancelFunc
	calls   chan *call
	over    chan upstreamEnd    // holds one: what came last
	acks    []*streamer.Pending // the reader's only
	polls   []*streamer.Pending // the writer's only

	mu       sync.Mutex
	begun    uint64 // calls begun on the lane
	finished uint64 // calls whose replies are through
	closing  bool   // no further call is begun
}

// call is a request that waits for its reply, or where the replies of a tunnel begin.
type call struct {
	tunnel bool
	method string
	reply  func(context.Context) (*streamer.Message, error)
	err    error // it was not begun

	mu      sync.Mutex
	raw     []byte // all that was taken of the client for it, as long as that is known
	final   bool   // its reply is on its way to the client, and is no interim one
	interim bool   // an interim reply went to the client

	decided chan struct{} // closed when it is known whether the connection becomes a tunnel
	becomes bool          // it does; good once decided is closed
}

// decide notes by the kind of a delivered reply whether the connection becomes a tunnel.
func (x *call) decide(k kind) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.raw = nil
	if k == interim {
		x.interim = true
		return
	}
	if !x.final && x.decided != nil {
		x.becomes = k == switched
		close(x.decided)
	}
	x.final = true
}

// untilClose tells whether a reply with this head goes on until its connection ends, so that nothing may come behind it.
func (x *call) untilClose(head []byte) bool {
	h, _, err := http1.ParseHead(head, maxHeadPart)
	if err != nil {
		return false
	}
	f, err := http1.ReplyFraming(&h, x.method)
	return err == nil && f.Kind == http1.UntilClose
}

// upstreamEnd is the far end's word that the upstream has closed.
type upstreamEnd struct {
	broken bool
	idle   bool // it was this end that waited too long
	calls  uint64
	octets []byte
}

func newCaller(p *Proxy, l *link, number uint64, in *inlet) *caller {
	c := &caller{p: p, l: l, number: number, lane: l.stream.Lane(number), in: in, calls: make(chan *call, pipelined), over: make(chan upstreamEnd, 1)}
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	c.reading, c.halt = context.WithCancel(c.ctx)
	return c
}

// run serves the connection to its end.
func (c *caller) run() {
	c.l.take(c.number, c)
	var reader sync.WaitGroup
	reader.Go(func() {
		c.read()
		close(c.calls)
		c.settle()
	})
	inOrder := c.write()
	for _, p := range c.polls {
		_ = c.acked(p)
	}
	c.cancel()
	for x := range c.calls { // the reader ends now, and must not wait for a place
		_ = c.giveUp(x)
	}
	reader.Wait()
	c.p.calls.end(int(c.begun - c.finished)) // nobody changes them any more
	if inOrder {
		finish(c.p.ctx, c.in)
	} else {
		reset(c.in.conn)
	}
	c.l.take(c.number, nil)
	c.p.wait.Go(c.leave)
}

// hasCalled reports whether the far end knows of this client: it has an upstream connection for one
// that has called, and for no other.
func (c *caller) hasCalled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun > 0
}

// leave tells the far end, so that it closes the upstream, and gives the lane back.
func (c *caller) leave() {
	if !c.hasCalled() {
		c.l.leave(c.number)
		return
	}
	ctx, cancel := context.WithTimeout(c.p.ctx, farewell)
	defer cancel()
	if m, err := c.lane.Call(ctx, &streamer.Message{Head: line(leave)}); err == nil {
		closeBody(m.Body)
		c.l.leave(c.number)
	}
}

func closeBody(r io.Reader) {
	if c, ok := r.(io.Closer); ok {
		_ = c.Close()
	}
}

// upstreamEnded notes that the upstream has closed; the writer sees to it when nothing is under way.
func (c *caller) upstreamEnded(what control, octets []byte) {
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
		case <-c.over: // an older word
		default:
		}
	}
}

// read takes one request after another from the client.
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
		case st == statePaused && len(c.in.peek()) == 0:
			c.noteEnd(upstreamEnd{idle: true})
		case st == stateEnded && len(c.in.peek()) == 0:
			if !errors.Is(err, io.EOF) {
				c.cancel()
			} else if c.hasCalled() {
				c.tell(shut, nil)
			}
			return
		default:
			c.tunnel()
			return
		}
	}
}

// request begins the exchange of one request whose head lies in the inlet; false: there is no next one.
func (c *caller) request(h *http1.Head, n int) bool {
	f, err := http1.RequestFraming(h)
	if err != nil {
		c.tunnel()
		return false
	}
	if slices.Contains(h.Tokens("Expect"), "100-continue") && f.Kind != http1.NoBody && (f.Kind != http1.Length || f.Length > 0) {
		return c.expecting(h, n, f)
	}
	g, st, release, _ := c.p.gather(c.reading, c.in, n, f, false)
	defer release()
	switch {
	case st == stateWhole && takes(c.l.stream, int64(len(g.entity))):
		give, ok := c.l.carries(int64(n + g.octets))
		if !ok {
			break
		}
		raw := append(bytes.Clone(h.Octets), g.raw...)
		m := &streamer.Message{Head: withHead(h.Octets, whole, g.line(f)), Body: bytes.NewReader(g.entity)}
		x := c.begin(h, raw, m, give)
		if x.err != nil {
			return false
		}
		c.in.take(n + g.octets)
		release()
		return c.goesOn(h, x)
	case c.reading.Err() != nil:
		return false
	}
	release()
	x := c.headAlone(h, n)
	return x != nil && c.pieces(x, http1.NewBody(f))
}

// headAlone begins a call whose body follows. Nil: there is no next one; a head that there is no
// room for goes in a tunnel, with all behind it.
func (c *caller) headAlone(h *http1.Head, n int) *call {
	give, ok := func() {}, true
	if n > shortHead {
		give, ok = c.l.carries(int64(n))
	}
	if !ok {
		c.tunnel()
		return nil
	}
	x := c.begin(h, bytes.Clone(h.Octets), &streamer.Message{Head: withHead(h.Octets, headOnly, nil)}, give)
	if x.err != nil {
		return nil
	}
	c.in.take(n)
	return x
}

// begin begins a call. Whether it could be is told by its err, and by what the writer makes of it.
// replied is called once its reply comes, or will not.
func (c *caller) begin(h *http1.Head, raw []byte, m *streamer.Message, replied func()) *call {
	x := &call{method: string(h.Method()), raw: raw, decided: make(chan struct{})}
	if x.err = c.enter(); x.err != nil {
		replied()
		return x
	}
	pending, err := c.lane.Begin(c.ctx, m)
	if x.err = err; err != nil {
		replied()
	} else {
		x.reply = func(ctx context.Context) (*streamer.Message, error) {
			defer replied()
			return pending.Reply(ctx)
		}
	}
	c.put(x)
	return x
}

// errClosing says that the connection is ending.
var errClosing = &Error{Code: Closed, At: -1}

// enter counts a call, unless the connection is about to be closed for want of calls.
func (c *caller) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return errClosing
	}
	c.begun++
	c.p.calls.begin()
	return nil
}

func (c *caller) put(x *call) {
	select {
	case c.calls <- x:
	case <-c.ctx.Done():
		_ = c.giveUp(x)
	}
}

// giveUp ends a call that nobody waits for any more: a stream that ends waits for those that nobody gave up. The error is that of its outcome.
func (c *caller) giveUp(x *call) error {
	if x.reply == nil {
		return x.err
	}
	m, err := x.reply(c.ctx)
	if err == nil {
		closeBody(m.Body)
	}
	return err
}

// goesOn waits, where a request may turn the connection into a tunnel, for what becomes of it. A client that does not wait may speak HTTP or something else: what it says goes on as
// it is.
func (c *caller) goesOn(h *http1.Head, x *call) bool {
	if _, upgrade := h.Get("Upgrade"); !upgrade && string(h.Method()) != http.MethodConnect {
		return true
	}
	wait, stop := context.WithCancel(c.reading)
	defer stop()
	c.p.wait.Go(func() {
		defer stop()
		select {
		case <-x.decided:
		case <-wait.Done():
		}
	})
	data, err := c.in.wait(wait, 0, 0)
	select {
	case <-x.decided:
		if x.becomes {
			c.relay()
		}
		return !x.becomes
	default:
	}
	switch {
	case len(data) > 0:
		c.tunnel()
	case errors.Is(err, io.EOF):
		c.tell(shut, nil)
	case c.reading.Err() == nil:
		c.cancel()
	}
	return false
}
