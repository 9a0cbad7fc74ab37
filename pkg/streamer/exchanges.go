package streamer

import (
	"errors"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/few"
	"github.com/hhfr/hhfr/internal/frame"
)

// exchanges are those under way on a stream: calls of this end, and what it serves.
type exchanges struct {
	s      *Stream
	slots  semaphore    // exchanges in flight that this end began
	unread atomic.Int64 // content of one-way messages that waits for the application, with what keeping it costs

	mu       sync.Mutex
	lanes    few.Map[uint64, *Lane]
	calls    few.Map[frame.Key, *call]     // by request, once begun, until the reply is whole
	served   few.Map[frame.Key, *Exchange] // by request, until the reply is whole
	left     few.Map[frame.Key, *Exchange] // those behind it whose handlers read on
	flight   int                           // those of them that count against MaxExchanges
	running  int                           // goroutines that serve
	detached int                           // exchanges that go on without one
	waiting  lazyFifo[*Exchange]           // for one of them
	waits    []chan struct{}               // for those who will wait for replies
	starting bool                          // one of them has not taken its first exchange yet
	parked   bool                          // one beside them waits to be needed, for unpark
	closing  bool                          // nothing new begins
	deaf     bool                          // nothing more is received
	readAll  bool                          // the peer said "done" behind ours: it has read all that was sent
	forgot   bool                          // more refusals than are kept
	unpark   chan bool
	refusals map[frame.Key]*Error // of one-way messages that were whole
}

func (e *exchanges) init(s *Stream, peer frame.Limits) {
	e.s = s
	e.slots.max.Store(inFlight(peer))
}

// lane gives the lane of a number.
func (e *exchanges) lane(n uint64) *Lane {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes.Get(n)
	if l == nil {
		l = &Lane{s: e.s, out: outLane{number: n}}
		e.lanes.Put(n, l)
	}
	return l
}

// drained reports whether nothing can be to be sent any more that is not yet queued.
func (e *exchanges) drained() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closing || e.running+e.detached > 0 || e.calls.Len() > 0 {
		return false
	}
	for _, x := range e.served.All {
		if x.oneway && x.ended {
			return false // its sender needs credit to come to its end
		}
	}
	return true
}

// crowded reports whether several are at work, who may have something to send soon.
func (e *exchanges) crowded() bool {
	if e.slots.holds() > 1 {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.crowdedLocked()
}

func (e *exchanges) crowdedLocked() bool {
	return e.slots.holds() > 1 || e.running+e.detached > 1 || e.waiting.len() > 0
}

// rest gives back what can be had again.
func (e *exchanges) rest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls.Rest()
	e.served.Rest()
	e.left.Rest()
	e.waiting.rest()
	e.waits = nil
	for i := range e.s.heads {
		e.s.heads[i].last.Store(nil)
	}
	e.unparkLocked(false)
	e.unpark = nil
	if e.running+e.detached == 0 {
		e.s.ctx.rest()
	}
}

// began has the reply of a request expected, which is about to be written.
func (e *exchanges) began(out *outbound) {
	c, ok := out.owner.(*call)
	if !ok {
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
	e.calls.Put(out.message.Key, c)
	if e.calls.Len() == 1 {
		e.s.conn.Await(true)
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
	text := why.Code.String()
	if why.Err != nil {
		text = why.Err.Error()
	}
	e.say(frame.Cancel{Message: in.key, Refused: true, Code: code, Text: text})
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

// say queues a cancel. What can cause it is bounded by our limits; who goes on all the same ends
// the stream.
func (e *exchanges) say(c frame.Cancel) {
	if !e.s.queue.say(priorityItem{cancel: c}) {
		go e.s.fail(&Error{Code: BeyondLimits, Err: errManyCancels})
	}
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

// abandon ends a call from this side: the request is given up, or the reply refused, as the case
// may be. free: also what is here of a whole reply.
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
	if key, _, whole := e.s.queue.state(c.out); whole {
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
	if c.out != nil && e.s.queue.drop(c.out, why, frame.Aborted) {
		c.out.release()
	}
	if !c.over {
		key, _, _ := e.s.queue.state(c.out)
		e.overLocked(c, key)
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

// overLocked forgets a call whose reply is whole, or will not be; key is that of its request.
func (e *exchanges) overLocked(c *call, key frame.Key) {
	c.over = true
	if e.calls.Get(key) == c {
		e.calls.Delete(key)
		if e.calls.Len() == 0 {
			e.s.conn.Await(false)
		}
	}
	c.out.release()
	c.out.leave()
	c.out = nil
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
	for _, x := range e.served.All {
		if !x.in.whole.Load() {
			x.in.fail(lost)
			e.gaveUpLocked(x.in, lost)
		}
	}
	failUnread(e.left.All, lost)
	for _, c := range e.calls.All {
		_, begun, _ := e.s.queue.state(c.out)
		e.failLocked(c, why.took(fate(begun)))
	}
}

// fail has all that comes in end.
func (e *exchanges) fail(why *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closeLocked()
	lost := why.took(FateUnknown)
	failUnread(e.served.All, lost)
	failUnread(e.left.All, lost)
	for _, c := range e.calls.All {
		c.failRepliesLocked(lost)
	}
}

// failUnread has handlers that still read their requests see that no more of them comes.
func failUnread(all iter.Seq2[frame.Key, *Exchange], lost *Error) {
	for _, x := range all {
		if !x.in.whole.Load() {
			x.in.fail(lost)
		}
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
	e.closeLocked()
	return !was
}

// unparkLocked has the goroutine that is parked, if there is one, go on, or end.
func (e *exchanges) unparkLocked(more bool) {
	if e.parked {
		e.parked = false
		e.unpark <- more
	}
}

func (e *exchanges) closeLocked() {
	e.closing = true
	e.s.queue.shutDown()
	e.unparkLocked(false)
}

func replyTo(request frame.Key) frame.Key {
	return frame.Key{Lane: request.Lane, Reply: true, Exchange: request.Exchange}
}

func requestOf(reply frame.Key) frame.Key {
	return frame.Key{Lane: reply.Lane, Exchange: reply.Exchange}
}

// endLocked ends what is between the ends about x. The handler may go on until it sees that its
// context is done.
func (e *exchanges) endLocked(x *Exchange, why *Error) {
	if x.gone != nil {
		return
	}
	x.gone = why
	e.uncountLocked(x)
	e.served.Delete(x.in.key)
	if !x.ended && x.in.failed() == nil && !x.in.whole.Load() {
		e.left.Put(x.in.key, x)
	}
	if e.closing {
		e.s.queue.wakeWriter()
	}
	if !x.replied {
		x.context.end()
	}
	if x.interim != nil {
		e.s.queue.drop(x.interim, why, frame.Aborted)
	}
	if x.out != nil && !x.replied {
		e.s.queue.drop(x.out, why, frame.Aborted)
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
