package streamer

import (
	"context"
	"errors"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Handler serves the exchanges that the other end begins, each in a goroutine of its own, at most [Limits.MaxExchanges] at once. It is called when the head of the message
// is there; the body comes as it is read. A request for which it returns without a reply is cancelled as failed. What it has not read of the body when it
// returns is dropped. ctx ends when the other end gives the exchange up, when the reply is refused, when the stream is over, and when the handler returns.
// It must end then. It must not call [Stream.Close] or [Stream.Abort].
type Handler func(ctx context.Context, x *Exchange)

// Exchange is one exchange that the other end began. It is for its handler's goroutine.
type Exchange struct {
	s       *Stream
	in      *inbound
	oneway  bool
	place   Place
	message Message
	ctx     context.Context
	cancel  context.CancelFunc

	// Below: under Stream.mu.
	out     *outgoing // the reply, once Reply was called
	ended   bool      // the handler returned
	replied bool      // the reply is whole
	gone    *Error    // nobody waits for a reply
	counted bool      // it is one of Stream.flight
}

// Lane is the lane of the exchange.
func (x *Exchange) Lane() uint64 { return x.in.key.Lane }

// Number is the number of the exchange on its lane.
func (x *Exchange) Number() uint64 { return x.in.key.Exchange }

// OneWay tells that no reply is wanted.
func (x *Exchange) OneWay() bool { return x.oneway }

// Message is the request, or the one-way message. Its Body can be the Body of the reply.
func (x *Exchange) Message() *Message { return &x.message }

// Reply sends the one reply. It returns when the last of it is queued; m.Body is read until then. ctx ends the waiting for room, usually the handler's. Errors are *[Error]: NoReply for a second
// reply or that to a one-way message, what the other end said if it waits no longer, Unsent or FateUnknown for a stream that is over, Aborted if m.Body failed.
func (x *Exchange) Reply(ctx context.Context, m *Message) error {
	out := &outgoing{x: x, key: replyTo(x.in.key)}
	if err := x.admit(out); err != nil {
		closeBody(m.Body)
		return err
	}
	return out.send(ctx, m)
}

// admit lets the reply in, if one is still wanted.
func (x *Exchange) admit(out *outgoing) error {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	switch {
	case x.oneway:
		return &Error{Code: NoReply, Err: errors.New("message is one-way")}
	case x.out != nil:
		return &Error{Code: NoReply, Err: errors.New("second reply")}
	case x.gone != nil:
		return x.gone
	}
	if err := x.s.admitLocked(out); err != nil {
		return err
	}
	x.out = out
	return nil
}

// startLocked has an exchange served, at once or when a handler is free.
func (s *Stream) startLocked(x *Exchange) {
	if s.running >= s.cfg.Limits.MaxExchanges {
		s.waiting.push(x)
		s.queued.add(0, exchangeWeight)
		return
	}
	s.running++
	s.tasks.Add(1)
	go s.serve(x)
}

// serve runs handlers until no exchange waits for one.
func (s *Stream) serve(x *Exchange) {
	defer s.tasks.Done()
	for x != nil {
		if s.bind(x) {
			if head, err := x.in.readHead(); err == nil {
				x.message = Message{Head: head, Body: s.incoming(&body{in: x.in}), Place: x.place}
				s.handler(x.ctx, x)
			}
			x.cancel()
		}
		x = s.served(x)
	}
}

// bind gives the exchange its context, if it still wants its handler.
func (s *Stream) bind(x *Exchange) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.gone != nil || x.in.err != nil || s.failed {
		return false
	}
	x.ctx, x.cancel = context.WithCancel(s.ctx)
	return true
}

// served ends the handler's part of x, and returns the exchange that waits for a handler longest, or nil.
func (s *Stream) served(x *Exchange) *Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.ended = true
	s.failInLocked(x.in, errBodyClosed)
	if !x.oneway && x.out == nil && x.gone == nil {
		s.controlLocked(frame.Cancel{Message: x.in.key, Refused: true, Code: frame.Failed})
		s.endExchangeLocked(x, &Error{Code: Failed})
	}
	s.refuseRestLocked(x)
	if s.waiting.len() == 0 || s.failed {
		s.running--
		s.wakeWriter()
		return nil
	}
	s.queued.sub(0, exchangeWeight)
	return s.waiting.pop()
}

// repliedLocked tells that the reply of x is whole, or was dropped.
func (s *Stream) repliedLocked(x *Exchange, dropped *Error) {
	if dropped == nil {
		x.replied = true
		s.endExchangeLocked(x, errReplied)
		s.refuseRestLocked(x)
		return
	}
	if !x.out.begun && x.gone == nil {
		s.controlLocked(frame.Cancel{Message: x.in.key, Refused: true, Code: frame.Failed})
	}
	s.endExchangeLocked(x, dropped)
}

// endExchangeLocked ends what is between the ends about x. The handler may go on until it sees that its context is done.
func (s *Stream) endExchangeLocked(x *Exchange, e *Error) {
	if x.gone != nil {
		return
	}
	x.gone = e
	s.uncountLocked(x)
	delete(s.exchanges, x.in.key)
	if !x.replied && x.cancel != nil {
		x.cancel()
	}
	if x.out != nil {
		s.dropLocked(x.out, e, frame.Aborted)
	}
}

var errReplied = &Error{Code: NoReply, Err: errors.New("reply was sent")}

// uncountLocked takes x out of what is in flight.
func (s *Stream) uncountLocked(x *Exchange) {
	if x.counted {
		x.counted = false
		s.flight--
	}
}

// refuseRestLocked stops a request that is still coming in when nobody reads it any more: after the reply, lest that be thrown away.
func (s *Stream) refuseRestLocked(x *Exchange) {
	if x.ended && x.replied && !x.in.whole {
		x.in.whole = true
		s.controlLocked(frame.Cancel{Message: x.in.key, Refused: true, Code: frame.Aborted})
	}
}
