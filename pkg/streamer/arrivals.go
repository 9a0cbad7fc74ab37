package streamer

import (
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// take begins an exchange, or refuses it.
func (e *exchanges) take(m *wire.IncomingMessage) error {
	s := e.s
	both := new(struct {
		in inbound
		x  Exchange
	})
	in, x := &both.in, &both.x
	newInbound(in, s, m)
	*x = Exchange{s: s, in: in, oneway: m.OneWay, place: m.Place}
	in.x = x
	if m.OneWay {
		in.unread = &e.unread
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.served[in.key] != nil {
		return fmt.Errorf("second %s", in.key)
	}
	e.served[in.key] = x
	e.flight++
	x.counted = true
	switch limits := &s.cfg.Limits; {
	case s.handler == nil:
		e.refuseLocked(in, frame.Unserved, &Error{Code: Unserved})
	case e.closing:
		e.refuseLocked(in, frame.Unprocessed, &Error{Code: Unprocessed})
	case e.flight > limits.MaxExchanges, e.unread.Load()+int64(e.waiting.len())*exchangeWeight > limits.MaxQueued:
		e.refuseLocked(in, frame.Busy, &Error{Code: Busy})
	}
	return nil
}

// expect binds a reply to its call. One that nobody waits for any more is read and dropped; one to
// a request that was never sent breaks the rules.
func (e *exchanges) expect(m *wire.IncomingMessage) error {
	in := new(inbound)
	newInbound(in, e.s, m)
	request := m.Key
	request.Reply = false
	e.mu.Lock()
	defer e.mu.Unlock()
	c, l := e.calls[request], e.lanes[m.Lane]
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

// whole is called before the last of a message is delivered, so that who has read it to its end
// finds it whole.
func (e *exchanges) whole(in *inbound) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if in.x != nil && in.x.oneway {
		e.uncountLocked(in.x)
		delete(e.served, in.key)
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
	l := e.lanes[request.Lane]
	if f.Code == frame.Unprocessed {
		e.lostLane(l, request, f.Message.Reply)
	}
	switch {
	case !f.Message.Reply && l != nil && l.placed:
		return why
	case f.Message.Reply:
		if x := e.served[request]; x != nil {
			e.endLocked(x, why)
		}
	case e.calls[request] != nil:
		e.failLocked(e.calls[request], why)
	case e.s.queue.refuse(request, why), l == nil || !l.has(request.Exchange):
	case len(e.refusals) >= maxRefusals:
		e.refusedMore = true
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
	case reply && e.served[request] == nil, !reply && (l == nil || !l.has(request.Exchange)):
		return
	case l == nil:
		l = &Lane{s: e.s, out: outLane{number: request.Lane}}
	}
	e.s.queue.restart(&l.out)
}
