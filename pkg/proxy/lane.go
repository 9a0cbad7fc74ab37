package proxy

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// lane is the far end of one client connection: it has the one upstream connection of it. What goes up does so in the order of the exchanges; replies go back in
// the order of the calls.
type lane struct {
	f      *far
	number uint64
	order  order

	mu       sync.Mutex
	client   uint64 // how many clients had the lane before
	up       *upstream
	calls    uint64 // calls seen of this client
	waiting  int    // of them, those without their whole reply
	lastCall chan struct{}
	lastPoll chan struct{}
	rest     *rest // of the reply that is under way in pieces
	running  int
	idle     chan struct{} // closed when nothing is running
	lost     bool          // the upstream ended while a call waited: nothing more comes of this client's connection
	torn     bool          // somebody gave up waiting for the reply before: who comes behind must not read from the upstream
	words    sync.WaitGroup
}

func newLane(f *far, number uint64) *lane {
	return &lane{f: f, number: number, order: order{next: 1, changed: make(chan struct{})}, lastCall: closed(), lastPoll: closed(), idle: closed()}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// serve serves one exchange of the client.
func (l *lane) serve(ctx context.Context, c control, x *streamer.Exchange) {
	client := l.enter()
	defer l.exit()
	if !l.order.enter(ctx, x.Number()) {
		return
	}
	// A near end that gives up one exchange gives up the client.
	defer context.AfterFunc(ctx, func() { l.drop(client) })()
	switch c.kind {
	case whole, headOnly, tunnel:
		l.call(ctx, c, x)
	case body, piece, shut:
		l.more(c, x)
		l.order.pass(x.Number())
		_ = x.Reply(ctx, &streamer.Message{})
	case poll:
		before, mine := l.queuePoll()
		l.order.pass(x.Number())
		defer close(mine)
		if l.await(ctx, before) {
			l.poll(ctx, x)
		}
	default:
		l.order.pass(x.Number())
	}
}

// enter and exit count what runs, so that leave can wait for it. enter tells for which client that is.
func (l *lane) enter() (client uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running++; l.running == 1 {
		l.idle = make(chan struct{})
	}
	return l.client
}

func (l *lane) exit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running--; l.running == 0 {
		close(l.idle)
	}
}

func await(ctx context.Context, before <-chan struct{}) bool {
	select {
	case <-before:
		return true
	case <-ctx.Done():
		return false
	}
}

// await waits for what is to be replied before. When the proxy closes, that may never come: no poll is taken any more. After one that did not wait to the end nobody is next.
func (l *lane) await(ctx context.Context, before <-chan struct{}) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.f.p.ctx, cancel)()
	next := await(ctx, before)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.torn = l.torn || !next
	return !l.torn
}

func (l *lane) queuePoll() (before, mine chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, mine = l.lastPoll, make(chan struct{})
	l.lastPoll = mine
	return before, mine
}

// call forwards a request, or what begins a tunnel, and sees to the first of its reply.
func (l *lane) call(ctx context.Context, c control, x *streamer.Exchange) {
	up, lost, dialErr := l.connect(ctx, c.kind == tunnel)
	l.mu.Lock()
	before, mine := l.lastCall, make(chan struct{})
	l.lastCall = mine
	l.mu.Unlock()
	r := &rest{l: l, up: up, mine: mine, tunnel: c.kind == tunnel}
	if c.head != nil {
		if h, _, err := http1.ParseHead(c.head, maxHeadPart); err == nil {
			r.method = string(h.Method())
		}
	}
	var sent sync.WaitGroup
	switch {
	case lost || dialErr != nil:
		l.order.pass(x.Number())
	default:
		sent.Go(func() {
			defer l.order.pass(x.Number())
			l.send(up, c, x.Message())
		})
	}
	defer sent.Wait()
	if !l.await(ctx, before) {
		r.finish()
		return
	}
	switch {
	case lost:
		_ = x.Reply(ctx, streamer.NewMessage(line(ended), nil))
		r.finish()
	case dialErr != nil:
		l.refuse(ctx, c, x, dialErr)
		r.finish()
	case r.tunnel:
		r.deliver(ctx, x, tunnel, nil)
	default:
		r.next(ctx, x)
	}
}

// send writes what a message says to the upstream. A failure is seen by who reads the reply.
func (l *lane) send(up *upstream, c control, m *streamer.Message) {
	conn := l.f.p.patient(up.in.conn)
	if _, err := conn.Write(c.head); err != nil {
		return
	}
	if c.framing != nil {
		entity, err := m.ReadAll(int64(l.f.p.cfg.MaxBuffer) + maxWhole)
		if err != nil {
			reset(up.in.conn)
			return
		}
		_, _ = conn.Write(c.framing.appendTo(nil, entity))
		return
	}
	if m.Body == nil {
		return
	}
	if err := copyBody(conn, m.Body); err != nil {
		reset(up.in.conn) // a request cut short must not look whole
	}
}

// copyBody copies a message's body; its error is that of the body.
func copyBody(conn io.Writer, from io.Reader) error {
	buf := make([]byte, readStep)
	for {
		n, err := from.Read(buf)
		if _, bad := conn.Write(buf[:n]); bad != nil {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// more forwards what follows a call.
func (l *lane) more(c control, x *streamer.Exchange) {
	l.mu.Lock()
	up := l.up
	l.mu.Unlock()
	switch {
	case up == nil:
	case c.kind == shut:
		_ = closeWrite(up.in.conn)
	default:
		l.send(up, c, x.Message())
	}
}

// refuse tells the client that there is no upstream.
func (l *lane) refuse(ctx context.Context, c control, x *streamer.Exchange, err error) {
	l.f.p.cfg.Log.Warn("upstream", "peer", l.f.p.cfg.Upstream.Host, "err", err)
	var text []byte
	if c.kind != tunnel {
		text = unreachable(err)
	}
	_ = x.Reply(ctx, streamer.NewMessage(line(ended), text))
}
