package streamer

import (
	"context"
	"errors"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Handler serves the exchanges that the peer begins, each in a goroutine of its own, at most
// [Limits.MaxExchanges] at once. It is called when the head of the message is there; the body comes as
// it is read, also while the reply is sent. A request for which it returns without a reply is
// cancelled as failed. What it has not read of the body when it returns is dropped. ctx ends when the
// peer gives the exchange up, when the reply is refused, when the stream is over, and when the handler
// returns. It must end then. It must not call [Stream.Close] or [Stream.Abort].
type Handler func(ctx context.Context, x *Exchange)

// Exchange is one exchange that the peer began. It is for its handler's goroutine.
type Exchange struct {
	s       *Stream
	in      *inbound
	oneway  bool
	place   Place
	first   Handler // of the request that upgraded the connection
	message Message
	ctx     context.Context
	cancel  context.CancelFunc

	// Below: under exchanges.mu.
	out     *outbound // the reply, once it was begun
	interim *outbound // the last reply before it
	ended   bool      // the handler returned
	replied bool      // the reply is whole
	gone    *Error    // nobody waits for a reply
	counted bool      // it is one of exchanges.flight
}

// Lane is the lane of the exchange.
func (x *Exchange) Lane() uint64 { return x.in.key.Lane }

// Number is the number of the exchange on its lane.
func (x *Exchange) Number() uint64 { return x.in.key.Exchange }

// OneWay reports whether no reply is wanted.
func (x *Exchange) OneWay() bool { return x.oneway }

// Context is that of the handler.
func (x *Exchange) Context() context.Context { return x.ctx }

// Message is the request, or the one-way message. Its Body can be the Body of the reply.
func (x *Exchange) Message() *Message { return &x.message }

// Reply sends the one reply. It returns when the last of it is queued; m.Body is read until then. ctx
// ends the waiting for room, usually the handler's. Errors are *[Error]: NoReply for a second reply or
// that to a one-way message, what the peer said if it waits no longer, Unsent or FateUnknown for a
// stream that is over, Aborted if m.Body failed.
func (x *Exchange) Reply(ctx context.Context, m *Message) error {
	out, err := x.begin(false)
	if err != nil {
		closeBody(m.Body)
		return err
	}
	return x.s.sendAll(ctx, out, m)
}

// Respond begins the one reply: its head is sent with the first of the body, at a Flush, or after a pause. length is
// that of the body in bytes, -1 if it is not known. The Writer must be closed or aborted. Errors are
// those of [Exchange.Reply].
func (x *Exchange) Respond(ctx context.Context, head []byte, length int64) (*Writer, error) {
	out, err := x.begin(false)
	if err != nil {
		return nil, err
	}
	w, err := x.s.send(ctx, out, head, length)
	if err == nil {
		w.expect()
	}
	return w, err
}

// Interim sends a reply before the one that counts, as HTTP has them with the statuses 1xx, and
// returns when it is written. It is given up when it is not by the end of ctx; one of more content than
// the peer's window is too long. Errors are those of [Exchange.Reply]; others may follow.
func (x *Exchange) Interim(ctx context.Context, m *Message) error {
	out, err := x.begin(true)
	if err != nil {
		closeBody(m.Body)
		return err
	}
	if err := x.s.sendAll(ctx, out, m); err != nil {
		return err
	}
	err = x.s.queue.await(ctx, out, out.written)
	own := (*Error)(nil)
	if err == nil || errors.As(err, &own) {
		return err
	}
	own = &Error{Code: Aborted, Err: err}
	if !x.s.queue.drop(out, own, frame.Aborted) { // it is over meanwhile
		return nil
	}
	return own
}

// begin lets a reply in, if one is still wanted.
func (x *Exchange) begin(interim bool) (*outbound, error) {
	out := &outbound{s: x.s, x: x}
	out.message.Key, out.message.Interim = replyTo(x.in.key), interim
	e := &x.s.exchanges
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case x.oneway:
		return nil, &Error{Code: NoReply, Err: errors.New("message is one-way")}
	case x.out != nil:
		return nil, &Error{Code: NoReply, Err: errors.New("second reply")}
	case x.gone != nil:
		return nil, x.gone
	}
	if err := x.s.queue.admit(out); err != nil {
		return nil, err
	}
	if interim {
		out.written = make(chan struct{})
		x.interim = out
	} else {
		x.out = out
	}
	return out, nil
}

// startLocked has an exchange served, at once or when a handler is free.
func (e *exchanges) startLocked(x *Exchange) {
	if e.running >= e.s.cfg.Limits.MaxExchanges {
		e.waiting.push(x)
		return
	}
	e.running++
	e.s.tasks.Add(1)
	go func() {
		defer e.s.tasks.Done()
		for x != nil {
			x = x.serve()
		}
	}()
}

// serve runs the handler of x. It gives the exchange that waits for a handler longest, or nil.
func (x *Exchange) serve() *Exchange {
	bound := x.bind()
	if x.first != nil { // it waits for the exchange, whatever becomes of that
		x.first(x.ctx, x)
	} else if bound {
		if head, err := x.in.readHead(); err == nil {
			x.message = Message{Head: head, Body: x.s.incoming(&body{in: x.in}), Place: x.place}
			x.s.handler(x.ctx, x)
		}
	}
	x.cancel()
	return x.end()
}

// bind gives the exchange its context, and reports whether it still wants its handler; if not, the context is done.
func (x *Exchange) bind() bool {
	e := &x.s.exchanges
	e.mu.Lock()
	defer e.mu.Unlock()
	x.ctx, x.cancel = context.WithCancel(x.s.ctx)
	if x.gone != nil || x.in.failed() != nil || x.s.ending.hasFailed() {
		x.cancel()
		return false
	}
	return true
}

// end is called when the handler has returned.
func (x *Exchange) end() (next *Exchange) {
	e := &x.s.exchanges
	e.mu.Lock()
	defer e.mu.Unlock()
	x.ended = true
	if x.oneway {
		x.in.drop()
	} else {
		x.in.fail(errBodyClosed)
	}
	if !x.oneway && x.out == nil && x.gone == nil {
		e.say(frame.Cancel{Message: x.in.key, Refused: true, Code: frame.Failed})
		e.endLocked(x, &Error{Code: Failed})
	}
	e.refuseRestLocked(x)
	if e.waiting.len() == 0 || x.s.ending.hasFailed() {
		e.running--
		x.s.queue.wakeWriter()
		return nil
	}
	return e.waiting.pop()
}

// replied is called when a reply is whole, or was dropped.
func (e *exchanges) replied(out *outbound, dropped *Error) {
	x := out.x
	if out.message.Interim {
		if dropped == nil {
			close(out.written)
		}
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if dropped == nil {
		x.replied = true
		e.endLocked(x, errReplied)
		e.refuseRestLocked(x)
		return
	}
	if _, begun, _ := out.state(); x.gone == nil && !begun {
		e.say(frame.Cancel{Message: x.in.key, Refused: true, Code: frame.Failed})
	}
	e.endLocked(x, dropped)
}

// endLocked ends what is between the ends about x. The handler may go on until it sees that its
// context is done.
func (e *exchanges) endLocked(x *Exchange, why *Error) {
	if x.gone != nil {
		return
	}
	x.gone = why
	e.uncountLocked(x)
	delete(e.served, x.in.key)
	if e.closing {
		e.s.queue.wakeWriter()
	}
	if !x.replied && x.cancel != nil {
		x.cancel()
	}
	for _, out := range [...]*outbound{x.interim, x.out} {
		if out != nil {
			e.s.queue.drop(out, why, frame.Aborted)
		}
	}
}

var errReplied = &Error{Code: NoReply, Err: errors.New("reply was sent")}

// uncountLocked takes x out of what is in flight.
func (e *exchanges) uncountLocked(x *Exchange) {
	if x.counted {
		x.counted = false
		e.flight--
	}
}

// refuseRestLocked stops a request that is still coming in when nobody reads it any more: after the
// reply, lest that be thrown away.
func (e *exchanges) refuseRestLocked(x *Exchange) {
	if x.ended && x.replied && x.in.stop() {
		e.say(frame.Cancel{Message: x.in.key, Refused: true, Code: frame.Aborted})
	}
}
