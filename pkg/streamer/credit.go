package streamer

import (
	"context"
	"errors"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// piece is what one frame has of a message: a segment of its head, one of its body, or that its sender waits.
type piece struct {
	head, body  wire.Part
	first, last bool // of the message
	flush       bool
	settled     int64
	outside     bool // it takes no room at the gate any more
}

// pieceCost is what a fragment costs of its message's credit beside its content (docs/wire-format.md, section 5.3).
const pieceCost = 64

func (p *piece) cost() int64 {
	if p.flush {
		return 0
	}
	return int64(len(p.head.Content) + len(p.body.Content) + pieceCost)
}

// takeCredit waits until the peer takes more of a message (docs/wire-format.md, section 5.3).
func (q *queue) takeCredit(ctx context.Context, out *outbound, cost int64) error {
	for {
		q.mu.Lock()
		err, granted := q.lost(out), out.credit > 0
		if err == nil && !granted && out.message.Interim {
			err = &Error{Code: TooLarge, Err: errors.New("interim reply is longer than the peer's window")}
		}
		if granted && err == nil {
			out.credit -= cost
		} else if err == nil && out.granted == nil {
			out.granted = make(chan struct{})
		}
		wait := out.granted
		q.mu.Unlock()
		if err != nil || granted {
			return err
		}
		if err := q.await(ctx, out, wait); err != nil {
			return err
		}
	}
}

// grant takes the credit that the peer gives. For a message that is over it means nothing.
func (q *queue) grant(w frame.Window) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if out := q.begun[w.Message]; out != nil {
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
	}
}

// maxCredit is as good as any credit above it.
const maxCredit = 1 << 60

// mayGo reports whether the peer takes the next piece: as it counts, nothing that waits was sent.
func (out *outbound) mayGo() bool { return out.credit+out.waiting > 0 }

// charge corrects the credit of a message by what a piece cost beyond what was reckoned, or below it.
func (out *outbound) charge(more int64) {
	q := out.s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.creditLocked(out, -more)
}

// leaveGate lets others in for a piece.
func (q *queue) leaveGate(p *piece) {
	if !p.outside {
		p.outside = true
		q.gate.release(p.cost())
	}
}

// creditOf is what a message may have of content when it begins.
func creditOf(peer frame.Limits) int64 { return bounded(max(peer.Window, frame.MinWindow)) }
