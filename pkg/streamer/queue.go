package streamer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/few"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// queue is what waits to be written: what is said about messages and shapes goes first, then shapes
// and messages have one frame each in turn.
type queue struct {
	gate       semaphore // bytes of content between senders and writer
	window     int64
	maxControl int
	wake       func(hurry bool)                     // the writer
	now        func()                               // the writer, in the goroutine of the caller
	take       func(*outbound, *outboundPiece) bool // streamWriter.take
	delays     bool                                 // Config.FlushDelay is set
	starved    atomic.Int64                         // how often a message waited for credit
	together   atomic.Int32                         // who collects what is to go together

	mu      sync.Mutex
	control lazyFifo[priorityItem]
	grants  lazyFifo[frame.Window]
	acks    lazyFifo[sequenceNote]
	asked   lazyFifo[uint64] // numbers of ours whose shapes the peer lacks
	ring    lazyFifo[turn]
	live    []*outbound                   // neither whole nor dropped
	begun   few.Map[frame.Key, *outbound] // those of them that are written in part
	over    onceSignal                    // given when nothing more goes in
	why     whyOver
	shut    bool    // no request begins any more
	said    bool    // our close frame is written, or about to be
	idle    bool    // the writer waits
	resync  resyncs // what is due of them
}

// whyOver is why directions are over.
type whyOver struct {
	out *Error // why nothing more goes in; nil: it does, or the stream ended in order
	in  *Error // why no more credit comes; nil: it does
}

// priorityItem is what goes before all messages: that the shape of a number of the peer's is
// lacking here, a cancel, that a message of ours is given up, or that what follows on a lane builds
// on nothing before. The peer's limits are for the writer alone.
type priorityItem struct {
	limits  *frame.Limits
	ask     uint64
	cancel  frame.Cancel
	drop    *outbound
	code    frame.CancelCode // of drop
	restart *outLane
}

// turn is one place in the writer's round: a message, a shape in full, or the restart of a lane.
type turn struct {
	out     *outbound
	job     *transfer
	restart *outLane
}

// maxAsked bounds the shapes that a peer lacks and that are not on their way yet.
const maxAsked = 1024

func newQueue(cfg *Config, peer frame.Limits) *queue {
	q := &queue{
		window:     creditOf(peer),
		maxControl: controlSlack + 4*cfg.Limits.MaxExchanges,
		delays:     cfg.FlushDelay > 0,
	}
	q.gate.max.Store(cfg.QueueBytes)
	return q
}

// wakeWriter has the writer look at once what there is. It may be called at any time.
func (q *queue) wakeWriter() { q.wake(true) }

// wakeForData has it look for data and acknowledgements, which may wait for others to go with.
func (q *queue) wakeForData() {
	collects := q.together.Load() > 0
	full := (collects || q.delays) && q.gate.holds() >= batchOctets
	if full || !collects {
		q.wake(full)
	}
}

// gathers reports whether data waits for more to go with.
func (q *queue) gathers() bool { return q.delays || q.together.Load() > 0 }

// collect has data wait for more until release is called, until it fills a batch, or until somebody
// waits for anything that may depend on its being written. here: who releases it writes it.
func (q *queue) collect(here bool) (release func()) {
	q.together.Add(1)
	return func() {
		if q.together.Add(-1); here {
			q.now()
		} else {
			q.wakeForData()
		}
	}
}

// admit lets a message in; after shut only one that is no request.
func (q *queue) admit(out *outbound) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hasEnded() {
		return q.why.out.took(Unsent)
	}
	if q.shut && out.slots != nil {
		return (*Error)(nil).took(Unsent)
	}
	out.pieces.items = out.space[:0]
	out.credit = q.window
	q.live = append(q.live, out)
	out.live = len(q.live)
	return nil
}

// shutDown lets no further request in.
func (q *queue) shutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shut = true
}

// enterRingLocked has a message wait for its turn.
func (q *queue) enterRingLocked(out *outbound) {
	if !out.inRing {
		out.inRing = true
		q.ring.push(turn{out: out})
	}
}

// letGo is called by who waits for what may depend on data that is collected.
func (q *queue) letGo() {
	if q.together.Load() > 0 {
		q.wakeWriter()
	}
}

// await waits for ready, for a message or, with nil, for what is none.
func (q *queue) await(ctx context.Context, out *outbound, ready <-chan struct{}) error {
	q.letGo()
	stop := q.over.wait()
	if out != nil {
		q.mu.Lock()
		if out.stop == nil {
			out.stop = make(chan struct{})
			if out.dropped != nil {
				close(out.stop)
			}
		}
		stop = out.stop
		q.mu.Unlock()
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-stop:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost(out)
}

// lost is why no more of a message can be sent, nil if it can.
func (q *queue) lost(out *outbound) error {
	switch {
	case out != nil && out.dropped != nil:
		return out.dropped
	case q.hasEnded():
		return q.why.out.took(fate(out != nil && out.begun))
	}
	return nil
}

// drop gives up a message that is not whole. The peer is told, if any of it was written. It is
// false for one that is over.
func (q *queue) drop(out *outbound, why *Error, code frame.CancelCode) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropLocked(out, why, code)
}

// giveUp drops a message as [queue.drop] does, for a reason that may depend on whether any of it
// was written.
func (q *queue) giveUp(out *outbound, why func(begun bool) *Error, code frame.CancelCode) (own *Error, dropped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	own = why(out.begun)
	return own, q.dropLocked(out, own, code)
}

// refuse drops a message that is on its way and that the peer does not want; it is false if there
// is none.
func (q *queue) refuse(key frame.Key, why *Error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.begun.Get(key)
	if out != nil && q.dropLocked(out, why, frame.Aborted) {
		out.release()
	}
	return out != nil
}

func (q *queue) dropLocked(out *outbound, why *Error, code frame.CancelCode) bool {
	if out.live == 0 {
		return false
	}
	out.dropped = why
	if out.stop != nil {
		close(out.stop)
	}
	for out.pieces.len() > 0 {
		p := out.pieces.pop()
		q.leaveGate(&p)
	}
	q.endLocked(out)
	if out.begun && !q.hasEnded() {
		q.sayLocked(priorityItem{drop: out, code: code})
	}
	q.wakeWriter()
	return true
}

// endLocked is the end of a message's way.
func (q *queue) endLocked(out *outbound) {
	last := q.live[len(q.live)-1]
	q.live[out.live-1], last.live = last, out.live
	q.live[len(q.live)-1] = nil
	q.live, out.live = q.live[:len(q.live)-1], 0
	if q.begun.Get(out.message.Key) == out {
		q.begun.Delete(out.message.Key)
	}
}

// say queues what goes before all messages. What can cause it is bounded by our limits; it is false
// for who goes on all the same.
func (q *queue) say(c priorityItem) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sayLocked(c)
}

func (q *queue) sayLocked(c priorityItem) bool {
	if q.hasEnded() || q.said {
		return true
	}
	if q.control.len() >= q.maxControl && c.drop == nil && c.restart == nil {
		return false
	}
	q.control.push(c)
	q.wakeWriter()
	return true
}

// restart has what follows on a lane build on nothing before.
func (q *queue) restart(l *outLane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !l.lost {
		l.lost = true
		q.sayLocked(priorityItem{restart: l})
	}
}

// push queues an item that is none of a message's.
func push[T any](q *queue, to *lazyFifo[T], v T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.hasEnded() && !q.said {
		to.push(v)
		q.wakeWriter()
	}
}

// resyncs are a set of wishes for a sync at which a decoder can begin that has nothing.
type resyncs uint8

const (
	resyncOwn   resyncs = 1 << iota // of our direction
	resyncAsked                     // the same, as the peer asks
	resyncPeer                      // of the peer's
)

// wish adds to what is due of resyncs.
func (q *queue) wish(more resyncs) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.resync |= more
	q.wakeWriter()
}

// lacks takes note that the peer lacks the shape of a number of ours; it is false if it says so too
// often.
func (q *queue) lacks(number uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked.len() >= maxAsked {
		return slices.Contains(q.asked.made.items[q.asked.made.head:], number)
	}
	q.asked.push(number)
	q.wakeWriter()
	return true
}

// end has nothing more go in, and drops all messages.
func (q *queue) end(why *Error) {
	q.mu.Lock()
	if !q.hasEnded() {
		q.why.out = why
		q.over.give()
	}
	q.mu.Unlock()
	q.dropAll(why, func(*outbound) bool { return true })
}

func (q *queue) hasEnded() bool { return q.over.given.Load() }

// rest gives back the room of what is empty.
func (q *queue) rest() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.control.rest()
	q.grants.rest()
	q.acks.rest()
	q.asked.rest()
	q.ring.rest()
	q.begun.Rest()
	if len(q.live) == 0 {
		q.live = nil
	}
}

// deafen is called when nothing more comes from the peer, for a reason, nil if it is done. It drops
// the requests of which nothing was written, since no reply would come, and what waits for credit.
// The peer may have refused that, or not have seen it: it cannot say so behind its close frame.
func (q *queue) deafen(why *Error) {
	if why == nil {
		why = &Error{Code: Closed}
	}
	q.mu.Lock()
	q.why.in = why
	q.mu.Unlock()
	q.dropAll(why, func(out *outbound) bool { return out.asks && !out.begun || !out.mayGo() })
}

func (q *queue) dropAll(why *Error, which func(*outbound) bool) {
	var dropped []*outbound
	q.mu.Lock()
	for _, out := range slices.Backward(q.live) { // dropping takes it out
		if which(out) && q.dropLocked(out, why.took(fate(out.begun)), frame.Aborted) {
			dropped = append(dropped, out)
		}
	}
	q.wakeWriter()
	q.mu.Unlock()
	for _, out := range dropped {
		out.over(out.dropped)
	}
}

// isIdle reports whether the writer has nothing to do.
func (q *queue) isIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.idle
}

var errManyCancels = errors.New("more cancelled messages and lacking shapes wait to be told than there may be")

// transfer is a shape on its way in full, with the turns that wait for its last piece.
type transfer struct {
	shape  *wire.Transfer
	parked []turn
}

// leaveGate lets others in for a piece.
func (q *queue) leaveGate(p *outboundPiece) {
	if !p.outside {
		p.outside = true
		q.gate.release(p.cost())
	}
}

// creditOf is what a message may have of content when it begins.
func creditOf(peer frame.Limits) int64 { return bounded(max(peer.Window, frame.MinWindow)) }

// state tells how far a message has come, and its key once it is begun.
func (q *queue) state(out *outbound) (key frame.Key, begun, whole bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return out.message.Key, out.begun, out.whole
}
