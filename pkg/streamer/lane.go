package streamer

import (
	"context"
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Lane is the exchanges of one client or principal on a stream (docs/wire-format.md, section 5). Its methods may be called concurrently.
type Lane struct {
	s      *Stream
	number uint64
	last   uint64 // the exchange begun last; under Stream.mu
	placed bool   // messages of a sequence go here; under Stream.mu
}

// Number is the lane's number.
func (l *Lane) Number() uint64 { return l.number }

// Restart gives the lane to another client or principal: nothing that is sent on it from now on builds on what was sent before,
// so that lengths tell the one nothing of the other. Each end restarts what it sends itself.
func (l *Lane) Restart() {
	if l.s.packer != nil {
		l.s.packer.Restart(l.number)
	}
}

// call is a request that waits for its reply. Fields but ready are under Stream.mu.
type call struct {
	out   *outgoing
	ready chan struct{} // closed when reply or err is set
	reply *inbound
	err   *Error
	woken bool // ready is closed
	over  bool // no (further) octet of a reply counts
}

func (c *call) wakeLocked() {
	if !c.woken {
		c.woken = true
		close(c.ready)
	}
}

// Call sends a request and waits for the first octets of its reply, and for the reply's head. Several may be under way at once; replies may overtake one another. The
// body of the reply comes as it is read; it must be read to its end or closed. Call waits while the other end has no room, or the queue is full; with
// [Config.FailWhenFull] it fails then. A body of m that is not a short one in memory is read by a goroutine of the stream's, maybe
// still after Call has returned.
//
// When ctx is done before the reply is whole, the exchange is cancelled, and the error is of code [Aborted] and wraps that of ctx. Other errors are *[Error]: with Remote, what the
// other end said (a cancel of section 7); without: [Unsent], [FateUnknown], [Full], [TooLarge].
func (l *Lane) Call(ctx context.Context, m *Message) (*Message, error) {
	s := l.s
	// One piece of memory for all of it.
	parts := new(struct {
		call  call
		out   outgoing
		claim claim
	})
	c, out := &parts.call, &parts.out
	c.ready, c.out = make(chan struct{}), out
	out.lane, out.call, out.claim = l, c, &parts.claim
	inline := inMemory(m.Body)
	if err := l.enter(ctx, c.out, m, !inline); err != nil {
		return nil, err
	}
	if inline {
		if err := c.out.send(ctx, m); err != nil && !s.answered(c) {
			return nil, s.abandon(c, err, true)
		}
	} else {
		go func() {
			defer s.tasks.Done()
			if err := c.out.send(ctx, m); err != nil {
				_ = s.abandon(c, err, false)
			}
		}()
	}
	return s.reply(ctx, c)
}

// reply waits for the first octets of a call's reply, and its head.
func (s *Stream) reply(ctx context.Context, c *call) (*Message, error) {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil, s.abandon(c, &Error{Code: Aborted, Err: ctx.Err()}, true)
	case <-s.deaf:
		s.mu.Lock()
		if !c.woken {
			s.endCallLocked(c, s.overLocked(c.out.fateLocked()))
		}
		s.mu.Unlock()
	}
	return s.receive(ctx, c)
}

// enter takes a place in flight for a request.
func (l *Lane) enter(ctx context.Context, out *outgoing, m *Message, async bool) error {
	s := l.s
	out.key.Lane = l.number
	if s.slots.max == 0 {
		closeBody(m.Body)
		return &Error{Code: Busy, Remote: true, Err: fmt.Errorf("takes no exchanges")}
	}
	t := s.slots.enter(1)
	if t != nil {
		if err := s.await(ctx, nil, t, true); err != nil {
			s.slots.leave(t)
			closeBody(m.Body)
			return unsent(err)
		}
	}
	if err := s.admit(out, async); err != nil {
		s.slots.release(1)
		closeBody(m.Body)
		return err
	}
	return nil
}

func unsent(err error) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	return &Error{Code: Unsent, Err: err}
}

// receive waits for the head of a reply that has begun.
func (s *Stream) receive(ctx context.Context, c *call) (*Message, error) {
	s.mu.Lock()
	in, err := c.reply, c.err
	s.mu.Unlock()
	if in == nil || err != nil {
		return nil, err
	}
	b := &body{in: in, call: c}
	if !in.isWhole() {
		b.stop = context.AfterFunc(ctx, func() { _ = s.abandon(c, &Error{Code: Aborted, Err: ctx.Err()}, false) })
	}
	head, err2 := in.readHead()
	if err2 != nil {
		b.finish()
		return nil, err2
	}
	return &Message{Head: head, Body: s.incoming(b)}, nil
}

// Send sends a one-way message. It returns when the message is queued as a whole, and waits and fails as [Lane.Call] does. No one tells whether it was
// processed; [Lane.Post] tells whether it arrived.
func (l *Lane) Send(ctx context.Context, m *Message) error {
	_, err := l.Post(ctx, m)
	return err
}

// answered tells that the reply is whole. It may be so before the request is, the rest of which the other end then wants no more.
func (s *Stream) answered(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.over && c.err == nil && c.reply != nil
}

// abandon ends a call from this side: the request is given up, or the reply refused, as the case may be. free: also what is here of a whole reply.
func (s *Stream) abandon(c *call, err error, free bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.over {
		if free && c.reply != nil {
			s.failInLocked(c.reply, &Error{Code: Aborted, Err: err})
		}
		if c.err != nil {
			return c.err
		}
		return err
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Code: Aborted, Err: err}
	}
	if c.out.whole {
		s.controlLocked(frame.Cancel{Message: replyTo(c.out.key), Refused: true, Code: frame.Aborted})
	} else {
		s.dropLocked(c.out, e, frame.Aborted)
	}
	s.endCallLocked(c, e)
	return e
}

// endCallLocked ends a call with an error.
func (s *Stream) endCallLocked(c *call, e *Error) {
	if c.over && c.woken {
		return
	}
	c.err = e
	if c.reply != nil {
		s.failInLocked(c.reply, e)
	}
	c.wakeLocked()
	s.dropLocked(c.out, e, frame.Aborted)
	s.overCallLocked(c)
}

// overCallLocked forgets a call whose reply is whole, or will not be.
func (s *Stream) overCallLocked(c *call) {
	c.over = true
	if _, begun := s.calls[c.out.key]; begun {
		delete(s.calls, c.out.key)
		if len(s.calls) == 0 {
			s.awaitLocked(false)
		}
	}
	s.room.answered(c.out.claim)
	s.settleLocked(c.out)
	if s.closing {
		s.wakeWriter()
	}
}

// awaitLocked tells the connection whether a reply is awaited, if it has a use for that.
func (s *Stream) awaitLocked(reply bool) {
	if c, ok := s.conn.(interface{ Await(bool) }); ok {
		c.Await(reply)
	}
}

func replyTo(request frame.Key) frame.Key {
	return frame.Key{Lane: request.Lane, Reply: true, Exchange: request.Exchange}
}
