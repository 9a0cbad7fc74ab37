package streamer

import (
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// arrive takes a message that came as a whole, and has somebody read it. alone: nothing else waits
// to be read.
func (e *exchanges) arrive(ev *wire.Event, octets int, alone bool) error {
	if ev.Message.Reply {
		return e.answer(ev, octets, alone)
	}
	x := e.newServed(ev.Message)
	x.in.carried(octets)
	e.mu.Lock()
	quickly, err := e.arriveLocked(x, ev, alone)
	e.mu.Unlock()
	if quickly {
		e.serveQuickly(x)
	}
	return err
}

// arriveLocked takes the message of x; quickly: it is to be served here.
func (e *exchanges) arriveLocked(x *Exchange, ev *wire.Event, alone bool) (quickly bool, _ error) {
	in := x.in
	if err := e.enterLocked(x, x.oneway); err != nil || in.failed() != nil {
		return false, err
	}
	if in.deliverLocked(ev) { // only who has e.mu can find it
		return false, beyondCredit(in)
	}
	in.started = true
	if alone && !x.oneway && e.s.quick != nil && e.running == 0 && !e.crowdedLocked() {
		e.running++
		x.bindLocked()
		return true, nil
	}
	e.startLocked(x)
	return false, nil
}

// answer takes a reply that came as a whole.
func (e *exchanges) answer(ev *wire.Event, octets int, alone bool) error {
	in := newReply()
	newInbound(in, e.s, ev.Message)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.expectLocked(in, ev.Message); err != nil || in.failed() != nil {
		return err
	}
	in.carried(octets)
	c := in.call
	if !in.interim && !c.over {
		e.overLocked(c, requestOf(in.key))
	}
	if in.deliverLocked(ev) {
		return beyondCredit(in)
	}
	in.started = true
	c.replies = append(c.replies, in)
	quick, notify := c.quick, c.notify
	if !alone || in.interim || quick == nil || notify == nil || c.wait != nil || e.crowdedLocked() {
		c.wakeLocked()
		return nil
	}
	c.quick, c.notify = nil, nil
	if !e.unlocked(quick) {
		c.notify = notify
		c.wakeLocked()
	}
	return nil
}

// unlocked calls f without the lock.
func (e *exchanges) unlocked(f func() bool) bool {
	e.mu.Unlock()
	defer e.mu.Lock()
	return f()
}

func beyondCredit(in *inbound) error {
	return &Error{Code: BeyondLimits, Err: fmt.Errorf("%s goes beyond its credit", in.key)}
}

// take begins an exchange of which the rest is to come, or refuses it.
func (e *exchanges) take(m *wire.IncomingMessage) error {
	x := e.newServed(m)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.enterLocked(x, false)
}

// newServed gives an exchange for a message that begins.
func (e *exchanges) newServed(m *wire.IncomingMessage) *Exchange {
	all := newExchange(e.s)
	in, x := &all.in, &all.x
	newInbound(in, e.s, m)
	x.oneway, x.message.Place, x.message.Body = m.OneWay, m.Place, &all.body
	if m.OneWay {
		in.unread = &e.unread
	}
	return x
}

// enterLocked lets an exchange in, or refuses it. brief: it is a one-way message that is whole, so
// that nothing more can come of it, and it is not in flight.
func (e *exchanges) enterLocked(x *Exchange, brief bool) error {
	in := x.in
	flight := e.flight + 1
	if !brief {
		if e.served.Get(in.key) != nil {
			return fmt.Errorf("second %s", in.key)
		}
		e.served.Put(in.key, x)
		e.flight, x.counted = flight, true
	}
	switch limits := &e.s.cfg.Limits; {
	case e.s.handler == nil:
		e.refuseLocked(in, frame.Unserved, &Error{Code: Unserved})
	case e.closing:
		e.refuseLocked(in, frame.Unprocessed, &Error{Code: Unprocessed})
	case flight > limits.MaxExchanges, e.unread.Load()+int64(e.beyondLocked())*exchangeWeight > limits.MaxQueued:
		e.refuseLocked(in, frame.Busy, &Error{Code: Busy})
	}
	return nil
}

// expect binds a reply of which the rest is to come to its call.
func (e *exchanges) expect(m *wire.IncomingMessage) error {
	in := newReply()
	newInbound(in, e.s, m)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.expectLocked(in, m)
}

// expectLocked binds a reply to its call. One that nobody waits for any more is read and dropped;
// one to a request that was never sent breaks the rules.
func (e *exchanges) expectLocked(in *inbound, m *wire.IncomingMessage) error {
	c, l := e.calls.Get(requestOf(m.Key)), e.lanes.Get(m.Lane)
	switch {
	case c != nil && !c.answered:
		in.call = c
		c.answered = !m.Interim
		if !c.takesInterims() {
			e.refuseLocked(in, frame.Busy, &Error{Code: Busy, Err: errors.New("nobody reads the replies before")})
		}
	case l == nil || !l.has(m.Exchange) || c != nil:
		return fmt.Errorf("%s answers nothing", m.Key)
	default:
		in.fail(&Error{Code: Aborted})
	}
	return nil
}

// begin has someone read a message whose first fragment was delivered.
func (e *exchanges) begin(in *inbound) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if in.started || in.failed() != nil {
		return
	}
	in.started = true
	if in.x != nil {
		e.startLocked(in.x)
		return
	}
	in.call.replies = append(in.call.replies, in)
	in.call.wakeLocked()
}

// whole is called before the last of a message is delivered, so that who has read it to its end
// finds it whole.
func (e *exchanges) whole(in *inbound) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if in.x != nil && in.x.oneway {
		e.uncountLocked(in.x)
		e.served.Delete(in.key)
		if e.closing {
			e.s.queue.wakeWriter()
		}
	}
	if in.call != nil && !in.interim && !in.call.over {
		e.overLocked(in.call, requestOf(in.key))
	}
}

// lose refuses a message that waited for a shape, or cannot be read since others before it were
// not: it was not processed, unless somebody reads it already.
func (e *exchanges) lose(in *inbound) {
	e.mu.Lock()
	defer e.mu.Unlock()
	code := frame.Unprocessed
	if in.started {
		code = frame.Busy
	}
	e.refuseLocked(in, code, &Error{Code: Code(code)})
}

// cancelled ends an exchange whose message the peer gave up.
func (e *exchanges) cancelled(in *inbound, why *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	in.mu.Lock()
	in.whole.Store(true)
	in.failLocked(why)
	in.mu.Unlock()
	e.gaveUpLocked(in, why)
}

// refused takes what the peer says of a message of ours that it does not take. It gives what ends
// the stream, as no sequence can do without it.
func (e *exchanges) refused(f frame.Cancel) error {
	why := &Error{Code: told(f.Code), Remote: true, Err: said(f.Text)}
	request := f.Message
	request.Reply = false
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes.Get(request.Lane)
	if f.Code == frame.Unprocessed {
		e.lostLane(l, request, f.Message.Reply)
	}
	switch {
	case !f.Message.Reply && l != nil && l.placed:
		return why
	case f.Message.Reply:
		if x := e.served.Get(request); x != nil {
			e.endLocked(x, why)
		}
	case e.calls.Get(request) != nil:
		e.failLocked(e.calls.Get(request), why)
	case e.s.queue.refuse(request, why), l == nil || !l.has(request.Exchange):
	case len(e.refusals) >= maxRefusals:
		e.forgot = true
	default:
		if e.refusals == nil {
			e.refusals = map[frame.Key]*Error{}
		}
		e.refusals[request] = why
	}
	return nil
}

// lostLane has what follows on a lane build on nothing before, as the peer may not know what a
// message that it did not process left there.
func (e *exchanges) lostLane(l *Lane, request frame.Key, reply bool) {
	switch {
	case reply && e.served.Get(request) == nil, !reply && (l == nil || !l.has(request.Exchange)):
		return
	case l == nil:
		l = &Lane{s: e.s, out: outLane{number: request.Lane}}
	}
	e.s.queue.restart(&l.out)
}
