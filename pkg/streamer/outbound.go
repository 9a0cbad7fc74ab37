package streamer

import (
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/reuse"
	"github.com/hhfr/hhfr/internal/wire"
)

// sender is whose message goes out: a call or an exchange that is served.
type sender interface {
	// finished is told once that a message is whole, or was dropped; nobody holds a lock.
	finished(out *outbound, dropped *Error)
	// carried is told of the bytes that a frame of the message takes; nobody holds a lock.
	carried(octets int)
}

// outLane is what the queue knows of a lane.
type outLane struct {
	number uint64

	// Under queue.mu.
	last uint64 // the exchange begun last
	lost bool   // a restart is queued, since the peer lost what it remembered
}

// outbound is a message on its way from a sender to the writer.
type outbound struct {
	owner   sender        // nil: nobody wants to know how it ends
	asks    bool          // it is a request that wants a reply
	lane    *outLane      // of a request, or a one-way message, which has its exchange from it
	slots   *semaphore    // where such a one has its place in flight
	written chan struct{} // closed when an interim reply is whole
	queued  chan struct{} // closed when the first piece is queued; nil: nobody waits
	sent    chan struct{} // closed when the sender has ended
	// holds is what a request's place in flight waits for: the request itself, and its reply.
	holds atomic.Int32
	// users have the message in hand: the writer until its last byte is written, and the call until
	// it is over. Behind them it is used again, unless somebody else keeps it.
	users atomic.Int32
	kept  bool
	// direct: who sends the message writes it as well, once all of it is queued.
	direct bool

	message wire.Outgoing // the writer's; its key is under queue.mu until it is begun
	payload int64         // written so far; the writer's

	// Below: under queue.mu.
	pieces  fifo[outboundPiece]
	space   [1]outboundPiece // what most messages need
	credit  int64            // content that the peer takes beside what waits; the last piece may go beyond
	waiting int64            // what the pieces that wait cost
	granted chan struct{}    // closed when there is more; made by who waits
	inRing  bool
	live    int  // its place in queue.live, from 1 on; 0: it is whole, or dropped
	begun   bool // its first piece went to the writer, and not in vain
	whole   bool // its last one, too
	dropped *Error
	stop    chan struct{} // closed when dropped; made by who waits
}

func (out *outbound) wakeLocked() {
	if out.granted != nil {
		close(out.granted)
		out.granted = nil
	}
}

// fate is what the end of the stream makes of a message that is on its way.
func fate(begun bool) Code {
	if begun {
		return FateUnknown
	}
	return Unsent
}

// over is called once when the message is whole, or was dropped; nobody holds a lock.
func (out *outbound) over(dropped *Error) {
	out.release()
	if out.owner != nil {
		out.owner.finished(out, dropped)
	}
}

// outbounds are those that nobody uses.
var outbounds = sync.Pool{New: func() any { return new(outbound) }}

// newOutbound gives a message with so many users. kept: it is for somebody else, too.
func newOutbound(users int32, kept bool) *outbound {
	out := outbounds.Get().(*outbound)
	out.kept = kept
	out.users.Store(users)
	return out
}

// leave is called once by each user. Of a message that was dropped the writer never says that it
// has it no more: that one is not used again.
func (out *outbound) leave() {
	if out.users.Add(-1) == 0 && !out.kept {
		*out = outbound{}
		outbounds.Put(out)
	}
}

// release takes one hold off a request's place in flight.
func (out *outbound) release() {
	if out.slots != nil && out.holds.Add(-1) == 0 {
		out.slots.release(1)
	}
}

// outboundPiece is what one frame has of a message: a segment of its head, one of its body, or that
// its sender waits.
type outboundPiece struct {
	head, body  wire.Part
	kept        [2]*reuse.Buffer // where their contents are
	first, last bool             // of the message
	flush       bool
	settled     int64
	outside     bool // it takes no room at the gate any more
}

// keep has the content of a part stay as it is.
func (p *outboundPiece) keep(i int, part *wire.Part) {
	if !part.Lasting {
		p.kept[i] = wire.Keep(part.Content)
		part.Content = p.kept[i].Octets
	}
}

// pieceCost is what a fragment costs of its message's credit beside its content
// (docs/wire-format.md, section 5.3).
const pieceCost = 64

// free gives back what a piece had that is written.
func (p *outboundPiece) free() {
	for _, b := range p.kept {
		wire.Release(b)
	}
}

func (p *outboundPiece) cost() int64 {
	if p.flush {
		return 0
	}
	return int64(len(p.head.Content) + len(p.body.Content) + pieceCost)
}

// mayGo reports whether the peer takes the next piece: as it counts, nothing that waits was sent.
func (out *outbound) mayGo() bool { return out.credit+out.waiting > 0 }

// maxCredit is as good as any credit above it.
const maxCredit = 1 << 60
