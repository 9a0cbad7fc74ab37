package streamer

import (
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// take begins an exchange, or refuses it. brief: it is a one-way message that is whole, so that
// nothing more can come of it, and it is not in flight.
func (e *exchanges) take(m *wire.IncomingMessage, brief bool) error {
	s := e.s
	all := newExchange(s)
	in, x := &all.in, &all.x
	newInbound(in, s, m)
	x.oneway, x.message.Place, x.message.Body = m.OneWay, m.Place, &all.body
	if m.OneWay {
		in.unread = &e.unread
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	flight := e.flight + 1
	if !brief {
		if e.served.Get(in.key) != nil {
			return fmt.Errorf("second %s", in.key)
		}
		e.served.Put(in.key, x)
		e.flight, x.counted = flight, true
	}
	switch limits := &s.cfg.Limits; {
	case s.handler == nil:
		e.refuseLocked(in, frame.Unserved, &Error{Code: Unserved})
	case e.closing:
		e.refuseLocked(in, frame.Unprocessed, &Error{Code: Unprocessed})
	case flight > limits.MaxExchanges, e.unread.Load()+int64(e.beyondLocked())*exchangeWeight > limits.MaxQueued:
		e.refuseLocked(in, frame.Busy, &Error{Code: Busy})
	}
	return nil
}

// expect binds a reply to its call. One that nobody waits for any more is read and dropped; one to
// a request that was never sent breaks the rules.
func (e *exchanges) expect(m *wire.IncomingMessage) error {
	in := newReply()
	newInbound(in, e.s, m)
	request := m.Key
	request.Reply = false
	e.mu.Lock()
	defer e.mu.Unlock()
	c, l := e.calls.Get(request), e.lanes.Get(m.Lane)
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
		in.err = &Error{Code: Aborted}
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

// beginQuickly has the caller take a reply that is whole in the goroutine of the reader; it is
// false if nobody does.
func (e *exchanges) beginQuickly(in *inbound) bool {
	c := in.call
	e.mu.Lock()
	waits := c != nil && c.quick != nil && c.notify != nil && c.wait == nil
	if !waits || in.interim || in.started || in.failed() != nil {
		e.mu.Unlock()
		return false
	}
	in.started = true
	c.replies = append(c.replies, in)
	quick, notify := c.quick, c.notify
	c.quick, c.notify = nil, nil
	e.mu.Unlock()
	if quick() {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c.notify = notify
	c.wakeLocked()
	return true
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
		e.overLocked(in.call)
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
	in.whole = true
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
