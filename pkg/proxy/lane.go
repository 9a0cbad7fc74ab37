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
	words    sync.WaitGroup
}

// upstream is one connection to the upstream.
type upstream struct {
	in  *inlet
	ctx context.Context // ends with it
	end context.CancelFunc
	// told, under lane.mu: the near end knows that it has ended.
	told bool
}

func newLane(f *far, number uint64) *lane {
	return &lane{f: f, number: number, order: order{next: 1, changed: make(chan struct{})}, lastCall: closed(), lastPoll: closed(), idle: closed()}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// order has the exchanges of a lane take their turns.
type order struct {
	mu      sync.Mutex
	next    uint64
	changed chan struct{}
}

// enter waits for the turn of an exchange; false: it has none (any more).
func (o *order) enter(ctx context.Context, number uint64) bool {
	for {
		o.mu.Lock()
		next, changed := o.next, o.changed
		o.mu.Unlock()
		if number <= next {
			return number == next
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// pass ends the turns of all exchanges up to a number.
func (o *order) pass(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if number < o.next {
		return
	}
	o.next = number + 1
	close(o.changed)
	o.changed = make(chan struct{})
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
		if await(ctx, before) {
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

func (l *lane) queuePoll() (before, mine chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, mine = l.lastPoll, make(chan struct{})
	l.lastPoll = mine
	return before, mine
}

// call forwards a request, or what begins a tunnel, and sees to the first of its reply.
func (l *lane) call(ctx context.Context, c control, x *streamer.Exchange) {
	up, lost, dialErr := l.connect(ctx)
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
	if !await(ctx, before) {
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

// connect gives the upstream connection of the lane, opened if need be, and counts a call. lost: the client's connection is over.
func (l *lane) connect(ctx context.Context) (up *upstream, lost bool, err error) {
	l.mu.Lock()
	up, lost = l.up, l.lost
	l.calls++
	l.waiting++
	if lost || up != nil && (!up.in.over() || l.waiting > 1) {
		l.mu.Unlock()
		return up, lost, nil
	}
	l.up = nil
	l.mu.Unlock()
	if up != nil {
		// It ended between two calls; of this one nothing is written yet.
		up.close()
	}
	conn, err := l.f.p.dialUpstream(ctx)
	if err != nil {
		l.mu.Lock()
		l.lost = true
		l.mu.Unlock()
		return nil, false, err
	}
	up = &upstream{in: l.f.p.newInlet(conn)}
	up.ctx, up.end = context.WithCancel(l.f.p.ctx)
	up.in.onEnd = func() { l.upstreamEnded(up) }
	l.mu.Lock()
	lost = l.lost || ctx.Err() != nil
	if !lost {
		l.up = up
	}
	l.mu.Unlock()
	up.in.start()
	if lost { // the client left meanwhile
		up.close()
		return nil, true, nil
	}
	return up, false, nil
}

// close closes the connection and waits for its reader.
func (up *upstream) close() {
	up.end()
	up.in.close()
}

// send writes what a message says to the upstream. A failure is seen by who reads the reply.
func (l *lane) send(up *upstream, c control, m *streamer.Message) {
	conn := up.in.conn
	if _, err := conn.Write(c.head); err != nil {
		return
	}
	if c.framing != nil {
		entity, err := m.ReadAll(int64(l.f.p.cfg.MaxBuffer) + maxWholeReply)
		if err != nil {
			reset(conn)
			return
		}
		_, _ = conn.Write(c.framing.appendTo(nil, entity))
		return
	}
	if m.Body == nil {
		return
	}
	if err := copyBody(conn, m.Body); err != nil {
		reset(conn) // a request cut short must not look whole
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
	l.f.p.cfg.Log.Warn("upstream", "url", l.f.p.cfg.Upstream.Redacted(), "err", err)
	var text []byte
	if c.kind != tunnel {
		text = unreachable(err)
	}
	_ = x.Reply(ctx, streamer.NewMessage(line(ended), text))
}

// finished counts a call whose reply is through, and tells the near end if the upstream has ended meanwhile.
func (l *lane) finished() {
	l.mu.Lock()
	l.waiting--
	up := l.up
	l.mu.Unlock()
	if up != nil && up.in.over() {
		l.upstreamEnded(up)
	}
}

// upstreamEnded tells the near end that the upstream has closed, if no call is under way.
func (l *lane) upstreamEnded(up *upstream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up != up || l.waiting > 0 || up.told || l.lost {
		return
	}
	up.told = true
	calls := l.calls
	l.words.Add(1)
	l.f.tasks.Add(1)
	go func() {
		defer l.f.tasks.Done()
		defer l.words.Done()
		l.tell(up, calls)
	}()
}

// tell says that an upstream has ended, with what it said before it did.
func (l *lane) tell(up *upstream, calls uint64) {
	ctx := up.ctx
	select {
	case <-l.f.open:
	case <-ctx.Done():
		return
	}
	data, err := up.in.wait(ctx, pieceOctets, 0)
	if ctx.Err() != nil {
		return
	}
	k := ended
	if !errors.Is(err, io.EOF) {
		k = broken
	}
	octets := append([]byte(nil), data[:min(len(data), pieceOctets)]...)
	// Not with ctx: the near end must have taken it before the lane can be another client's.
	m, err := l.f.stream.Lane(l.number).Call(l.f.p.ctx, streamer.NewMessage(endLine(k, calls), octets))
	if err == nil {
		closeBody(m.Body)
	}
}

// drop closes the upstream of a client that is gone, if that is still the one whose lane this is.
func (l *lane) drop(client uint64) {
	l.mu.Lock()
	var up *upstream
	if l.client == client {
		l.lost = true
		up = l.up
	}
	l.mu.Unlock()
	if up != nil {
		up.end()
		reset(up.in.conn)
	}
}

// leave ends the lane of a client, whose last exchange has this number, and makes it ready for another.
func (l *lane) leave(number uint64) {
	l.order.pass(number)
	l.end()
	l.mu.Lock()
	idle := l.idle
	l.mu.Unlock()
	<-idle
	l.mu.Lock()
	l.client++
	l.calls, l.waiting, l.up, l.rest, l.lost = 0, 0, nil, nil, false
	l.lastCall, l.lastPoll = closed(), closed()
	l.mu.Unlock()
}

// end closes the upstream and waits for what is to be told of it.
func (l *lane) end() {
	l.mu.Lock()
	l.lost = true
	up := l.up
	l.mu.Unlock()
	if up != nil {
		up.close()
	}
	l.words.Wait()
}
