package streamer

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// exchanges are those under way on a stream: calls of this end, and what it serves.
type exchanges struct {
	s      *Stream
	slots  gate         // exchanges in flight that this end began
	queued atomic.Int64 // content of one-way messages that waits for the application, with what keeping it costs

	mu      sync.Mutex
	lanes   map[uint64]*Lane
	calls   map[frame.Key]*call     // by request, once begun, until the reply is whole
	served  map[frame.Key]*Exchange // by request, until the reply is whole
	flight  int                     // those of them that count against MaxExchanges
	running int                     // goroutines that serve
	waiting fifo[*Exchange]
	closing bool // nothing new begins
	deaf    bool // nothing more is received

	refusals    map[frame.Key]*Error // of one-way messages that were whole
	refusedMore bool                 // than are kept
	readAll     bool                 // the peer said "done" behind ours: it has read all that was sent
}

func (e *exchanges) init(s *Stream, peer frame.Limits) {
	e.s = s
	e.slots.max = inFlight(peer)
	e.lanes, e.calls, e.served = map[uint64]*Lane{}, map[frame.Key]*call{}, map[frame.Key]*Exchange{}
}

// lane gives the lane of a number.
func (e *exchanges) lane(n uint64) *Lane {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes[n]
	if l == nil {
		l = &Lane{s: e.s, number: n}
		e.lanes[n] = l
	}
	return l
}

// drained reports whether nothing can be to be sent any more that is not yet queued.
func (e *exchanges) drained() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closing || e.running > 0 || len(e.calls) > 0 {
		return false
	}
	for _, x := range e.served {
		if x.oneway && x.ended {
			return false // its sender needs credit to come to its end
		}
	}
	return true
}

// began has the reply of a request expected, which is about to be written.
func (e *exchanges) began(out *outbound) {
	c := out.call
	if c == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.over {
		return
	}
	if e.deaf {
		e.failLocked(c, e.s.ending.failure().took(FateUnknown))
		return
	}
	e.calls[out.message.Key] = c
	if len(e.calls) == 1 {
		e.s.conn.Await(true)
	}
}

// take begins an exchange, or refuses it.
func (e *exchanges) take(m *wire.Message) error {
	s := e.s
	both := new(struct {
		in inbound
		x  Exchange
	})
	in, x := &both.in, &both.x
	newInbound(in, s, m)
	*x = Exchange{s: s, in: in, oneway: m.OneWay, place: m.Place}
	in.x = x
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
	case e.flight > limits.MaxExchanges, e.queued.Load()+int64(e.waiting.len())*exchangeWeight > limits.MaxQueued:
		e.refuseLocked(in, frame.Busy, &Error{Code: Busy})
	}
	return nil
}

// expect binds a reply to its call. One that nobody waits for any more is read and dropped; one to a
// request that was never sent breaks the rules.
func (e *exchanges) expect(m *wire.Message) error {
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

// refuse tells the peer that its message is not taken, and ends the exchange here. A request whose
// reply is not taken has been processed for all we know: its caller gets FateUnknown.
func (e *exchanges) refuse(in *inbound, code frame.CancelCode, why *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refuseLocked(in, code, why)
}

func (e *exchanges) refuseLocked(in *inbound, code frame.CancelCode, why *Error) {
	if in.failed() != nil {
		return
	}
	e.say(frame.Cancel{Message: in.key, Refused: true, Code: code, Text: why.Code.String()})
	if in.call != nil {
		why = &Error{Code: FateUnknown, Err: why}
	}
	in.fail(why)
	if in.x != nil {
		e.endLocked(in.x, why)
	}
	if in.call != nil {
		e.failLocked(in.call, why)
	}
}

// say queues a cancel. What can cause it is bounded by our limits; who goes on all the same ends the
// stream.
func (e *exchanges) say(c frame.Cancel) {
	if !e.s.queue.say(control{cancel: c}) {
		go e.s.fail(&Error{Code: BeyondLimits, Err: errManyCancels})
	}
}

// lose refuses a message that waited for a shape, or cannot be read since others before it were not:
// it was not processed, unless somebody reads it already.
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

// gaveUpLocked ends the exchange of an incoming message that its sender gave up.
func (e *exchanges) gaveUpLocked(in *inbound, why *Error) {
	if in.x != nil {
		e.uncountLocked(in.x)
		e.endLocked(in.x, why)
	}
	if in.call != nil && !in.interim {
		e.failLocked(in.call, why)
	}
}

// refused takes what the peer says of a message of ours that it does not take. It gives what ends the
// stream, as no sequence can do without it.
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

// lostLane has what follows on a lane build on nothing before, as the peer may not know what a message
// that it did not process left there.
func (e *exchanges) lostLane(l *Lane, request frame.Key, reply bool) {
	switch {
	case reply && e.served[request] == nil, !reply && (l == nil || !l.has(request.Exchange)):
		return
	case l == nil:
		l = &Lane{s: e.s, number: request.Lane}
	}
	e.s.queue.restart(l)
}

// abandon ends a call from this side: the request is given up, or the reply refused, as the case may
// be. free: also what is here of a whole reply.
func (e *exchanges) abandon(c *call, err error, free bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.over {
		if free {
			c.failRepliesLocked(&Error{Code: Aborted, Err: err})
		}
		if c.err != nil {
			return c.err
		}
		return err
	}
	var own *Error
	if !errors.As(err, &own) {
		own = &Error{Code: Aborted, Err: err}
	}
	if key, _, whole := c.out.state(); whole {
		e.say(frame.Cancel{Message: replyTo(key), Refused: true, Code: frame.Aborted})
	}
	e.failLocked(c, own)
	return own
}

// failLocked ends a call with an error.
func (e *exchanges) failLocked(c *call, why *Error) {
	if c.err != nil {
		return
	}
	c.err = why
	c.failRepliesLocked(why)
	c.wakeLocked()
	if e.s.queue.drop(c.out, why, frame.Aborted) {
		c.out.release()
	}
	if !c.over {
		e.overLocked(c)
	}
}

// failCall ends a call whose request was dropped, unless its reply is whole.
func (e *exchanges) failCall(c *call, why *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !c.over {
		e.failLocked(c, why)
	}
}

// overLocked forgets a call whose reply is whole, or will not be.
func (e *exchanges) overLocked(c *call) {
	c.over = true
	key, _, _ := c.out.state()
	if e.calls[key] == c {
		delete(e.calls, key)
		if len(e.calls) == 0 {
			e.s.conn.Await(false)
		}
	}
	c.out.release()
	if e.closing {
		e.s.queue.wakeWriter()
	}
}

// deafen tells that nothing more will be received, for a reason, nil if the peer is done.
func (e *exchanges) deafen(why *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deaf = true
	lost := why.took(FateUnknown)
	for _, x := range e.served {
		if !x.in.isWhole() {
			x.in.fail(lost)
			e.gaveUpLocked(x.in, lost)
		}
	}
	for _, c := range e.calls {
		_, begun, _ := c.out.state()
		e.failLocked(c, why.took(fate(begun)))
	}
}

// fail has all that comes in end.
func (e *exchanges) fail(why *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closing = true
	lost := why.took(FateUnknown)
	for _, x := range e.served {
		if !x.in.isWhole() {
			x.in.fail(lost)
		}
	}
	for _, c := range e.calls {
		c.failRepliesLocked(lost)
	}
}

// done is called when the peer says that it is; readAll: behind our own close.
func (e *exchanges) done(readAll bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.readAll = readAll
}

// close lets nothing new begin; it is false if that was so already.
func (e *exchanges) close() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.closing
	e.closing = true
	return !was
}

func replyTo(request frame.Key) frame.Key {
	return frame.Key{Lane: request.Lane, Reply: true, Exchange: request.Exchange}
}
