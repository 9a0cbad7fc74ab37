package streamer

import (
	"slices"

	"github.com/hhfr/hhfr/internal/frame"
)

// The side of the queue that the writer sees.

// writerStep is what the writer does next.
type writerStep uint8

const (
	stepNone writerStep = iota
	stepControl
	stepAck
	stepGrant
	stepAsked
	stepResync
	stepTurn
	stepPiece
)

// task is a step, and what it is about.
type task struct {
	step    writerStep
	control priorityItem
	ack     sequenceNote
	grant   frame.Window
	asked   uint64
	resync  resyncs
	turn    turn
	piece   outboundPiece // of a message whose turn it is, with stepPiece: it was taken out
}

// next takes the next task, into t; it is false if there is none. Of a message whose turn it is the
// piece is taken out at once, if it can be written as it is.
func (q *queue) next(t *task, asItIs func(*outbound, *outboundPiece) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.idle = false
	switch {
	case q.control.len() > 0:
		t.step, t.control = stepControl, q.control.pop()
		if l := t.control.restart; l != nil {
			l.lost = false
		}
	case q.acks.len() > 0:
		t.step, t.ack = stepAck, q.acks.pop()
		q.gate.release(t.ack.cost())
	case q.grants.len() > 0:
		t.step, t.grant = stepGrant, q.grants.pop()
	case q.asked.len() > 0:
		t.step, t.asked = stepAsked, q.asked.pop()
	case q.resync != 0:
		t.step, t.resync, q.resync = stepResync, q.resync, 0
	case q.ring.len() > 0:
		t.step, t.turn = stepTurn, q.ring.pop()
		out := t.turn.out
		if out != nil && out.pieces.len() > 0 && out.mayGo() && !q.hasEnded() && asItIs(out, out.pieces.front()) {
			t.step = stepPiece
			q.commitLocked(t.turn, &t.piece)
		}
	default:
		t.step, q.idle = stepNone, true
	}
	return t.step != stepNone
}

// close has the writer say its last word, if nothing is on its way.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.said = q.said || q.idle && len(q.live) == 0 && q.control.len()+q.acks.len()+q.grants.len()+q.asked.len() == 0
	return q.said
}

// front is the piece of a message whose turn it is, if that is still wanted, and the peer takes it:
// what went as text before may have cost more than was reckoned. Pieces that wait for credit are in
// nobody's way.
func (q *queue) front(out *outbound) (outboundPiece, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if out.pieces.len() == 0 {
		out.inRing = false
		return outboundPiece{}, false
	}
	if !out.mayGo() {
		out.inRing = false
		for i := out.pieces.head; i < len(out.pieces.items); i++ {
			q.leaveGate(&out.pieces.items[i])
		}
		return outboundPiece{}, false
	}
	return *out.pieces.front(), true
}

// commit takes the piece out; it is false if that is not wanted any more.
func (q *queue) commit(t turn, p *outboundPiece) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.out.pieces.len() == 0 || q.hasEnded() {
		t.out.inRing = false
		return false
	}
	q.commitLocked(t, p)
	return true
}

// pass has a message that is one piece go by the queue, if nothing is in that and it can be written
// as it is: see [queue.commitLocked].
func (q *queue) pass(out *outbound, p *outboundPiece, asItIs func(*outbound, *outboundPiece) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if out.credit <= 0 || q.lost(out) != nil || q.resync != 0 || !asItIs(out, p) ||
		q.control.len()+q.acks.len()+q.grants.len()+q.asked.len()+q.ring.len() > 0 {
		return false
	}
	q.beginLocked(out, true)
	return true
}

// commitLocked takes a piece out: from here on it is written, and with its last one the message is
// whole. A request gets its exchange with its first one.
func (q *queue) commitLocked(t turn, p *outboundPiece) {
	out := t.out
	*p = out.pieces.pop()
	out.waiting -= p.cost()
	q.leaveGate(p)
	q.beginLocked(out, p.last)
	if out.inRing = out.pieces.len() > 0; out.inRing {
		q.ring.push(t)
	}
}

// beginLocked notes that a piece of a message is about to be written; last: its last one.
func (q *queue) beginLocked(out *outbound, last bool) {
	if !out.begun {
		out.begun = true
		if out.lane != nil {
			out.lane.last++
			out.message.Exchange = out.lane.last
		}
		if !last {
			q.begun.Put(out.message.Key, out)
		}
	}
	if last {
		out.whole = true
		q.endLocked(out)
	}
}

// neverLeft takes note that the connection took no more than n bytes of a batch: what begins behind
// them is not sent.
func (q *queue) neverLeft(batch []begun, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range batch {
		if b.at >= n {
			b.out.begun = false
		}
	}
}

// hasSaid reports whether our close frame is written, or about to be.
func (q *queue) hasSaid() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.said
}

// again puts turns that waited before all others.
func (q *queue) again(turns []turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range slices.Backward(turns) {
		q.ring.unpop(t)
	}
}

// begun is a message whose first frame begins at a byte of the batch.
type begun struct {
	out *outbound
	at  int
}
