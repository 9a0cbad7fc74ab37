package streamer

import (
	"context"
	"errors"

	"github.com/hhfr/hhfr/internal/frame"
)

// takeCredit waits until the peer takes more of a message (docs/wire-format.md, section 5.3).
func (q *queue) takeCredit(ctx context.Context, out *outbound, cost int64) error {
	for {
		q.mu.Lock()
		err, granted := q.lost(out), out.credit > 0
		if err == nil && !granted && out.message.Interim {
			err = &Error{Code: TooLarge, Err: errors.New("interim reply is longer than the peer's window")}
		}
		starved := err == nil && !granted && q.why.in != nil &&
			q.dropLocked(out, q.why.in.took(fate(out.begun)), frame.Aborted)
		switch {
		case starved:
			err = out.dropped
		case granted && err == nil:
			out.credit -= cost
		case err == nil && out.granted == nil:
			out.granted = make(chan struct{})
		}
		wait := out.granted
		q.mu.Unlock()
		if starved {
			out.over(out.dropped)
		}
		if err != nil || granted {
			return err
		}
		q.starved.Add(1)
		if err := q.await(ctx, out, wait); err != nil {
			return err
		}
	}
}

// grant takes the credit that the peer gives. For a message that is over it means nothing.
func (q *queue) grant(w frame.Window) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if out := q.begun.Get(w.Message); out != nil {
		q.creditLocked(out, bounded(w.Octets))
	}
}

// creditLocked adds to the credit of a message, which goes on if it waits for that.
func (q *queue) creditLocked(out *outbound, more int64) {
	out.credit = min(out.credit, maxCredit) + min(more, maxCredit)
	if out.credit > 0 {
		out.wakeLocked()
	}
	if out.pieces.len() > 0 && out.mayGo() {
		q.enterRingLocked(out)
		q.wakeForData()
	}
}

// charge corrects the credit of a message by what a piece cost beyond what was reckoned, or below
// it.
func (q *queue) charge(out *outbound, more int64) {
	q.mu.Lock()
	q.creditLocked(out, -more)
	starved := q.why.in != nil && !out.mayGo() &&
		q.dropLocked(out, q.why.in.took(fate(out.begun)), frame.Aborted)
	q.mu.Unlock()
	if starved {
		out.over(out.dropped)
	}
}

// put queues a piece of a message, when there is credit and room for it. The last one of a message
// that its sender writes itself wakes nobody.
func (q *queue) put(ctx context.Context, out *outbound, p *outboundPiece) error {
	cost := p.cost()
	if q.putNow(out, p, cost) {
		return nil
	}
	if err := q.takeCredit(ctx, out, cost); err != nil {
		return err
	}
	if t := q.gate.enter(cost); t != nil {
		if err := q.await(ctx, out, t.ready); err != nil {
			q.gate.leave(t)
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.lost(out); err != nil {
		q.gate.release(cost)
		return err
	}
	q.pushLocked(out, p, cost)
	return nil
}

// putNow queues a piece if that needs no waiting.
func (q *queue) putNow(out *outbound, p *outboundPiece, cost int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if out.credit <= 0 || q.lost(out) != nil || !q.gate.tryEnter(cost) {
		return false
	}
	out.credit -= cost
	q.pushLocked(out, p, cost)
	return true
}

func (q *queue) pushLocked(out *outbound, p *outboundPiece, cost int64) {
	out.pieces.push(*p)
	out.waiting += cost
	if out.queued != nil && p.first {
		close(out.queued)
	}
	q.enterRingLocked(out)
	switch {
	case p.last && out.direct:
	case p.last && !p.first: // its first piece filled a batch, which may be gone already
		q.wakeWriter()
	default:
		q.wakeForData()
	}
}

// meet takes the limits of the peer, once its hello is there. Messages that have begun have the
// credit that the hello gives them.
func (q *queue) meet(peer frame.Limits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.window
	q.window = creditOf(peer)
	if more := q.window - before; more > 0 {
		for _, out := range q.live {
			q.creditLocked(out, more)
		}
	}
	q.control.push(priorityItem{limits: &peer})
	q.wakeWriter()
}
