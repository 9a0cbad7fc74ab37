package streamer

import (
	"context"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

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

// bind gives the exchange its context, and reports whether it still wants its handler; if not, the
// context is done.
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

// finished implements sender, for replies.
func (x *Exchange) finished(out *outbound, dropped *Error) {
	e := &x.s.exchanges
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
	if _, begun, _ := e.s.queue.state(out); x.gone == nil && !begun {
		e.say(frame.Cancel{Message: x.in.key, Refused: true, Code: frame.Failed})
	}
	e.endLocked(x, dropped)
}

// adopt serves the upgraded request as exchange 1 of lane 0.
func (e *exchanges) adopt(m *Message, serve ExchangeHandler) {
	both := new(struct {
		in inbound
		x  Exchange
	})
	in, x := &both.in, &both.x
	in.s, in.key, in.x = e.s, frame.Key{Exchange: 1}, x
	in.started, in.whole, in.headDone = true, true, true
	*x = Exchange{s: e.s, in: in, counted: true, first: serve, message: *m}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.served[in.key] = x
	e.flight++
	e.startLocked(x)
}
