package streamer

import (
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/frame"
)

// startLocked has an exchange served. Each goroutine that serves sees to it that one more starts as
// long as exchanges wait: those whose handlers are quick are served one after the other by few
// goroutines, those whose handlers wait side by side.
func (e *exchanges) startLocked(x *Exchange) {
	e.waiting.push(x)
	e.hireLocked()
}

// hireLocked starts a goroutine that serves if an exchange waits, none is about to serve it, and
// one more may run.
func (e *exchanges) hireLocked() {
	if e.waiting.len() == 0 || e.starting || e.running >= e.s.cfg.Limits.MaxExchanges {
		return
	}
	e.starting = true
	e.running++
	if e.parked {
		e.unparkLocked(true)
		return
	}
	e.s.tasks.Add(1)
	go e.serve()
}

func (e *exchanges) serve() {
	defer e.s.tasks.Done()
	growStack(false)
	for again := true; again; {
		e.mu.Lock()
		e.starting = false
		x := e.nextLocked()
		e.mu.Unlock()
		for x != nil {
			again = x.first == nil // few streams have another exchange soon after that
			x = x.serve()
		}
		again = again && e.park()
	}
}

// allParked is how many goroutines are parked, on all streams.
var allParked atomic.Int32

// park has a goroutine that served wait for more, until the stream is silent for a while: a new one
// would have its stack to grow first. It reports whether there is more. There is one on a stream,
// and on few of many streams: what is used by turns had better take little memory.
func (e *exchanges) park() (more bool) {
	defer allParked.Add(-1)
	if allParked.Add(1) > maxParked {
		return false
	}
	e.mu.Lock()
	if e.parked || e.closing {
		e.mu.Unlock()
		return false
	}
	if e.unpark == nil {
		e.unpark = make(chan bool, 1)
	}
	e.parked = true
	unpark := e.unpark
	e.mu.Unlock()
	return <-unpark
}

// nextLocked gives a goroutine that serves the exchange that waits longest. It is nil if none
// does: the goroutine ends.
func (e *exchanges) nextLocked() *Exchange {
	if e.waiting.len() == 0 {
		e.running--
		if e.closing {
			e.s.queue.wakeWriter()
		}
		return nil
	}
	x := e.waiting.pop()
	e.hireLocked()
	x.bindLocked()
	return x
}

// beyondLocked is how many exchanges wait because no more handlers may run.
func (e *exchanges) beyondLocked() int {
	return max(0, e.waiting.len()+e.running-e.s.cfg.Limits.MaxExchanges)
}

// serve runs the handler of x, and gives the exchange that is to be served next; nil: none.
func (x *Exchange) serve() *Exchange {
	if x.first != nil { // it waits for the exchange, whatever becomes of that
		x.first(&x.context, x)
	} else if x.bound && x.open() {
		x.s.handler(&x.context, x)
	}
	e := &x.s.exchanges
	ends := x.letsGo()
	e.mu.Lock()
	defer e.mu.Unlock()
	if ends {
		x.returnedLocked()
	}
	return e.nextLocked()
}

// open reads the head of the message; it is false if that cannot be read.
func (x *Exchange) open() bool {
	if x.opened {
		return true
	}
	head, err := x.in.readHead()
	if err != nil {
		return false
	}
	x.message.Head, x.message.Body = head, x.s.incoming(x.message.Body.(*body))
	x.opened = true
	return true
}

// serveQuickly has the quick handler serve a message that is whole, in the goroutine of the reader,
// which is counted as one that serves; if it does not take the exchange, the other one does.
func (e *exchanges) serveQuickly(x *Exchange) {
	served := !x.bound || !x.open() || e.s.quick(x)
	ends := served && x.letsGo()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running--
	if ends {
		x.returnedLocked()
	}
	if !served {
		e.startLocked(x)
	} else if e.closing {
		e.s.queue.wakeWriter()
	}
}

// Detach has the exchange go on when its handler has returned, until Release is called: for
// handlers whose reply is sent by somebody else, for whom no goroutine needs to wait. It is for the
// handler, once.
func (x *Exchange) Detach() {
	e := &x.s.exchanges
	e.mu.Lock()
	defer e.mu.Unlock()
	x.detached.Add(1)
	x.s.tasks.Add(1)
	e.detached++
}

// Release ends an exchange that was detached, as the return of its handler ends others, when that
// has returned. It is called once, by anybody.
func (x *Exchange) Release() {
	defer x.s.tasks.Done()
	ends := x.letsGo()
	e := &x.s.exchanges
	e.mu.Lock()
	defer e.mu.Unlock()
	if ends {
		x.returnedLocked()
	}
	e.detached--
	if e.closing {
		e.s.queue.wakeWriter()
	}
}

// letsGo is called by the handler's goroutine, and for who detached the exchange. With the last it
// ends: see returnedLocked.
func (x *Exchange) letsGo() (ends bool) {
	ends = x.detached.Add(-1) < 0
	if ends {
		x.context.end()
	}
	return ends
}

// bindLocked finds out whether the exchange still wants its handler; if not, its context is done.
func (x *Exchange) bindLocked() {
	x.bound = x.gone == nil && x.in.failed() == nil && !x.s.ending.hasFailed()
	if !x.bound {
		x.context.end()
	}
}

// returnedLocked is called when the handler has returned.
func (x *Exchange) returnedLocked() {
	e := &x.s.exchanges
	x.ended = true
	e.left.Delete(x.in.key)
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
}

// carried implements sender.
func (x *Exchange) carried(octets int) { x.wire.add(octets, 0) }

// finished implements sender, for replies.
func (x *Exchange) finished(out *outbound, dropped *Error) {
	e := &x.s.exchanges
	if out.message.Interim {
		if dropped == nil {
			close(out.written)
		}
		return
	}
	x.wire.end()
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
	all := newExchange(e.s)
	in, x := &all.in, &all.x
	in.s, in.key = e.s, frame.Key{Exchange: 1}
	in.started, in.headDone = true, true
	in.whole.Store(true)
	x.counted, x.first, x.message = true, serve, *m
	e.mu.Lock()
	defer e.mu.Unlock()
	e.served.Put(in.key, x)
	e.flight++
	e.startLocked(x)
}
