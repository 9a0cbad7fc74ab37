package streamer

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Call sends a request and waits for the first bytes of its reply, and for the reply's head.
// Several may be under way at once; replies may overtake one another. The body of the reply comes
// as it is read; it must be read to its end or closed. Call waits while the peer takes no further
// exchange, or the queue is full. A body of m that is not a short one in memory is read by a
// goroutine of the stream's, maybe still after Call has returned.
//
// When ctx is done before the reply is whole, the exchange is cancelled, and the error is of code
// [Aborted] and wraps that of ctx. Other errors are *[Error]: with Remote, what the peer said (a
// cancel of section 7); without: [Unsent], [FateUnknown], [TooLarge].
func (l *Lane) Call(ctx context.Context, m *Message) (*Message, error) {
	var p *Pending
	var err error
	if l.s.fitsWindow(m.Body) {
		p, err = l.begin(ctx, m, true)
	} else {
		p, _, err = l.openBody(ctx, m)
	}
	if err != nil {
		return nil, err
	}
	return p.Reply(ctx)
}

// Begin queues a request, and leaves the reply to [Pending.Reply], which must be called. Requests
// that one goroutine begins leave in that order, which [Lane.Call] in several goroutines does not
// promise. It waits and fails as Call does. A body that may have to wait for the peer to read is
// sent as by [Lane.Open]: the peer may wait, before it reads on, for its reply to be read.
func (l *Lane) Begin(ctx context.Context, m *Message) (*Pending, error) {
	return l.begin(ctx, m, false)
}

// BeginNow is Begin for a request that no other of the caller's is about to follow: the caller
// writes it, too, if nothing else might go with it and the connection takes it at once, as it does
// that of a Call.
func (l *Lane) BeginNow(ctx context.Context, m *Message) (*Pending, error) {
	return l.begin(ctx, m, true)
}

// begin is Begin; direct: see sendAll.
func (l *Lane) begin(ctx context.Context, m *Message, direct bool) (*Pending, error) {
	if !l.s.fitsWindow(m.Body) {
		return l.Open(ctx, m)
	}
	p, out, err := l.enter(ctx, m.Body, false)
	if err != nil {
		return nil, err
	}
	if err := l.s.sendAll(ctx, out, m, direct); err != nil && !p.c.isAnswered() {
		return nil, l.s.exchanges.abandon(&p.c, err, true)
	}
	return p, nil
}

// Open begins a request whose body comes as it is read: it returns when the first of it is queued,
// and a goroutine of the stream's reads the rest. Requests that one goroutine begins by Open and
// Begin leave in that order. It waits and fails as [Lane.Call] does.
func (l *Lane) Open(ctx context.Context, m *Message) (*Pending, error) {
	p, out, err := l.openBody(ctx, m)
	if err != nil {
		return nil, err
	}
	select {
	case <-out.queued:
		return p, nil
	case <-out.sent:
	}
	e := &l.s.exchanges
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.c.err != nil && len(p.c.replies) == 0 {
		return nil, p.c.err
	}
	return p, nil
}

func (l *Lane) openBody(ctx context.Context, m *Message) (*Pending, *outbound, error) {
	p, out, err := l.enter(ctx, m.Body, true)
	if err != nil {
		return nil, nil, err
	}
	out.queued, out.sent = make(chan struct{}), make(chan struct{})
	own := *m
	l.s.tasks.Add(1)
	go func() {
		defer l.s.tasks.Done()
		defer close(out.sent)
		if err := l.s.sendAll(ctx, out, &own, false); err != nil && !p.c.isAnswered() {
			_ = l.s.exchanges.abandon(&p.c, err, false)
		}
	}()
	return p, out, nil
}

// Start begins a request whose body is written by the caller; length is that of the body in bytes,
// -1 if it is not known. The Writer must be closed or aborted, and [Pending.Reply] called, also
// while the body is written. It waits and fails as [Lane.Call] does.
func (l *Lane) Start(ctx context.Context, head []byte, length int64) (*Pending, *Writer, error) {
	p, out, err := l.enter(ctx, nil, true)
	if err != nil {
		return nil, nil, err
	}
	w, err := l.s.send(ctx, out, head, length)
	if err != nil {
		return nil, nil, l.s.exchanges.abandon(&p.c, err, true)
	}
	w.expect()
	return p, w, nil
}

// enter begins a call. kept: its request is for others than this package, too.
func (l *Lane) enter(ctx context.Context, b io.Reader, kept bool) (*Pending, *outbound, error) {
	p, out := new(Pending), newOutbound(2, kept)
	p.c.s, p.c.out = l.s, out
	p.c.replies = p.c.space[:0]
	out.owner, out.asks = &p.c, true
	out.holds.Store(2)
	if err := l.admit(ctx, out); err != nil {
		closeBody(b)
		return nil, nil, err
	}
	return p, out, nil
}

// fitsWindow reports whether a body is in memory and surely goes without the peer's reading any of
// it.
func (s *Stream) fitsWindow(b io.Reader) bool {
	if b == nil {
		return true
	}
	sized, ok := b.(interface{ Len() int })
	return ok && inMemory(b) && int64(sized.Len()) <= creditOf(s.peer.Load().Limits)/2
}

// Pending is a request that is on its way and waits for its reply.
type Pending struct{ c call }

// Reply waits for the first bytes of the reply, and for its head, as [Lane.Call] does. Replies
// before the one that counts are passed over.
func (p *Pending) Reply(ctx context.Context) (*Message, error) {
	for {
		m, err := p.Next(ctx)
		if err != nil || !m.Interim {
			return m, err
		}
		_ = m.Body.(io.Closer).Close()
	}
}

// Next waits for the next reply, for one goroutine at a time: those with Message.Interim come
// before the one that counts, and must be read to their end or closed before the next. One that is
// given up before its head is there is passed over. Errors are those of [Pending.Reply]; behind the
// reply that counts, NoReply.
func (p *Pending) Next(ctx context.Context) (*Message, error) {
	for {
		in, err := p.c.next(ctx)
		if err != nil {
			return nil, err
		}
		if m, err := p.open(ctx, in); err == nil || !in.interim {
			return m, err
		}
	}
}

// Notify has f called once, when Next has something to give, at once if it has. f is called by
// whoever finds that out, with locks held: it must neither wait nor call the stream.
//
// With quick, that is called first, by the goroutine that reads the stream and without a lock, for
// a reply that came whole while nothing else waited to be read, and few calls were under way: who
// takes it there saves waking another goroutine. It must not wait. If it is false, f is called.
// It may come late, when somebody else has taken the reply: see [Pending.Ready].
func (p *Pending) Notify(f func(), quick func() bool) {
	e := &p.c.s.exchanges
	e.mu.Lock()
	defer e.mu.Unlock()
	p.c.notify, p.c.quick = f, quick
	if p.c.isReadyLocked() {
		p.c.wakeLocked()
	}
}

// Ready reports whether a reply has begun that nobody has taken, or there will be none:
// [Pending.Next] waits at most for the rest of its head then.
func (p *Pending) Ready() bool {
	e := &p.c.s.exchanges
	e.mu.Lock()
	defer e.mu.Unlock()
	return p.c.isReadyLocked()
}

// open gives a reply once its head is there.
func (p *Pending) open(ctx context.Context, in *inbound) (*Message, error) {
	c := &p.c
	e := &c.s.exchanges
	b, m := &in.reply.body, &in.reply.message
	if !in.interim {
		b.call = c
	}
	if !in.whole.Load() {
		b.stop = context.AfterFunc(ctx, func() { _ = e.abandon(c, &Error{Code: Aborted, Err: ctx.Err()}, false) })
	}
	head, err := in.readHead()
	if err != nil {
		b.finish()
		return nil, err
	}
	m.Head, m.Body, m.Interim = head, c.s.incoming(b), in.interim
	return m, nil
}

// next waits for a reply that has begun.
func (c *call) next(ctx context.Context) (*inbound, error) {
	e := &c.s.exchanges
	e.mu.Lock()
	for len(c.replies) == 0 && c.err == nil && !c.taken() {
		if c.wait == nil {
			c.wait = e.waitLocked()
		}
		wait := c.wait
		e.mu.Unlock()
		c.s.queue.letGo()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, e.abandon(c, &Error{Code: Aborted, Err: ctx.Err()}, true)
		}
		e.mu.Lock()
		if len(e.waits) < maxWaits {
			e.waits = append(e.waits, wait) // it is empty, and no call's any more
		}
	}
	defer e.mu.Unlock()
	switch {
	case len(c.replies) > 0:
	case c.err != nil:
		return nil, c.err
	default:
		return nil, &Error{Code: NoReply, Err: errors.New("the reply was taken")}
	}
	in := c.replies[0]
	c.replies, c.reading = c.replies[1:], in
	return in, nil
}

// maxWaits is how many channels are kept for those who will wait.
const maxWaits = 64

// waitLocked gives an empty channel to wait on.
func (e *exchanges) waitLocked() chan struct{} {
	n := len(e.waits)
	if n == 0 {
		return make(chan struct{}, 1)
	}
	wait := e.waits[n-1]
	e.waits = e.waits[:n-1]
	return wait
}

// admit takes a place in flight for a request.
func (l *Lane) admit(ctx context.Context, out *outbound) error {
	s := l.s
	e := &s.exchanges
	out.message.Lane = l.out.number
	if e.slots.isShut() {
		return &Error{Code: Busy, Remote: true, Err: fmt.Errorf("takes no exchanges")}
	}
	if t := e.slots.enter(1); t != nil {
		if err := s.queue.await(ctx, nil, t.ready); err != nil {
			e.slots.leave(t)
			return unsent(err)
		}
	}
	out.lane, out.slots = &l.out, &e.slots
	if err := s.queue.admit(out); err != nil {
		out.slots = nil
		e.slots.release(1)
		return err
	}
	return nil
}

// finished implements sender.
func (c *call) finished(_ *outbound, dropped *Error) {
	if dropped != nil {
		c.s.exchanges.failCall(c, dropped)
	}
}

// carried implements sender.
func (c *call) carried(octets int) { c.wire.add(octets, 0) }

// isAnswered reports whether the reply is whole. It may be so before the request is, the rest of
// which the peer then wants no more.
func (c *call) isAnswered() bool {
	e := &c.s.exchanges
	e.mu.Lock()
	defer e.mu.Unlock()
	return c.over && c.err == nil && c.answered
}

// Count adds what the data frames of the request and of its replies take on the wire to a counter:
// those so far, and all that follow.
func (p *Pending) Count(to *WireBytes) { p.c.wire.countFor(to) }
