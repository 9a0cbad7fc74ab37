package streamer

import (
	"sync/atomic"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// outbound is a message on its way from a sender to the writer.
type outbound struct {
	s       *Stream
	lane    *Lane         // of a request, which has its exchange from it
	call    *call         // of a request that wants a reply
	x       *Exchange     // of a reply
	written chan struct{} // closed when an interim reply is whole
	queued  chan struct{} // closed when the first piece is queued; nil: nobody waits
	sent    chan struct{} // closed when the sender has ended
	// holds is what a request's place in flight waits for: the request itself, and its reply.
	holds atomic.Int32

	message wire.Outgoing // the writer's; its key is under queue.mu until it is begun
	payload int64         // written so far; the writer's

	// Below: under queue.mu.
	pieces  fifo[piece]
	space   [1]piece      // what most messages need
	credit  int64         // content that the peer takes beside what waits; the last piece may go beyond
	waiting int64         // what the pieces that wait cost
	granted chan struct{} // closed when there is more; made by who waits
	inRing  bool
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

// state tells how far a message has come, and its key once it is begun.
func (out *outbound) state() (key frame.Key, begun, whole bool) {
	q := out.s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return out.message.Key, out.begun, out.whole
}

// over is called once when the message is whole, or was dropped; nobody holds a lock.
func (out *outbound) over(dropped *Error) {
	if out.x != nil {
		out.s.exchanges.replied(out, dropped)
		return
	}
	out.release()
	if dropped != nil && out.call != nil {
		out.s.exchanges.failCall(out.call, dropped)
	}
}

// release takes one hold off a request's place in flight.
func (out *outbound) release() {
	if out.lane != nil && out.holds.Add(-1) == 0 {
		out.s.exchanges.slots.release(1)
	}
}
