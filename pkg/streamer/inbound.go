package streamer

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/reuse"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
)

// inboundSegment is a piece of an incoming message's content that waits for its reader; or, with
// settled, that its sender waits (docs/wire-format.md, section 5.5).
type inboundSegment struct {
	head, last bool
	text       bool
	cost       int32 // of a segment of 4 MiB at most
	program    *program.Program
	content    []byte
	buffer     *reuse.Buffer // of the content, if nothing behind the segment is in it; nil: another's
	settled    int64
}

// joining is the segment that is joined.
type joining struct {
	part       int8 // 0: of the head, 1: of the body
	last, more bool // it is the last of its part; it is not joined to its end
	buffer     *reuse.Buffer
}

// inbound is a message that comes in: the stream's reader appends segments, the goroutine that
// reads the message joins them.
type inbound struct {
	s       *Stream
	key     frame.Key
	interim bool
	hasHead bool
	over    atomic.Bool // err is set
	whole   atomic.Bool // nothing more comes
	clients uint32      // laneHeads.clients when it began
	x       *Exchange   // of a request
	call    *call       // of a reply
	reply   *receivedReply
	unread  *atomic.Int64 // of one-way messages: the content of all of them that nobody has read

	// The goroutine that reads the message only.
	total    int64
	headDone bool
	joins    [2]*program.Joiner // of head and body, while they are joined
	at       joining

	mu      sync.Mutex
	segs    fifo[inboundSegment]
	space   [2]inboundSegment // what most messages need
	credit  int64             // what the peer may still send of it, as it knows
	read    int64             // what was read, and is not granted anew
	started bool              // someone reads it
	dropped bool              // what comes is counted as read
	err     *Error            // nothing more will be taken
	wait    chan struct{}     // made by the goroutine that reads, closed by who has something for it
}

func newInbound(in *inbound, s *Stream, m *wire.IncomingMessage) {
	in.s, in.key, in.interim, in.hasHead = s, m.Key, m.Interim, m.HasHead
	in.segs.items = in.space[:0]
	in.credit, in.clients = s.cfg.Limits.Window, s.heads[m.Lane%lastHeads].clients.Load()
	m.User = in
}

func (in *inbound) wakeLocked() {
	if in.wait != nil {
		close(in.wait)
		in.wait = nil
	}
}

// carried counts the bytes of a frame of the message.
func (in *inbound) carried(octets int) {
	if in.x != nil {
		in.x.wire.add(0, octets)
	}
	if in.call != nil {
		in.call.wire.add(0, octets)
	}
}

// taken is what came of the message and was not granted anew.
func (in *inbound) taken() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.s.cfg.Limits.Window - in.credit
}

// stop says that nothing more of the message is wanted; it is false if it is whole.
func (in *inbound) stop() bool { return !in.whole.Load() && !in.whole.Swap(true) }

// maxBeyond is how far a sender may go beyond its credit, in bytes: what one segment joins to, 4
// MiB at most, and what the fragments of that cost, the shortest that there may be.
const maxBeyond = 5 << 20

// deliver queues what a fragment has for the goroutine that reads the message. last: the message is
// whole with it, which who has read it to its end must find it to be. beyond: its sender has no
// credit for that.
func (in *inbound) deliver(ev *wire.Event) (beyond bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.deliverLocked(ev)
}

func (in *inbound) deliverLocked(ev *wire.Event) (beyond bool) {
	if ev.Last {
		in.whole.Store(true)
	}
	cost := int64(len(ev.Head.Content) + len(ev.Body.Content) + pieceCost)
	if in.credit -= cost; in.credit < -maxBeyond {
		return true
	}
	if in.err != nil {
		if in.dropped {
			in.grantLocked(cost)
		}
		return false
	}
	in.queued(cost)
	for i, p := range [...]*wire.Part{&ev.Head, &ev.Body} {
		if !p.There {
			continue
		}
		g := inboundSegment{head: i == 0, last: p.Last, text: p.Text, program: p.Program,
			content: p.Content, cost: int32(cost)}
		if i == 1 || !ev.Body.There {
			g.buffer = ev.Buffer
		}
		in.segs.push(g)
		cost = 0
	}
	in.wakeLocked()
	return false
}

// queued counts content that waits for the application and that nobody else bounds.
func (in *inbound) queued(cost int64) {
	if in.unread != nil {
		in.unread.Add(cost)
	}
}

// settle queues that the sender of the message waits. Of flushes without content between them,
// which costs credit, the last one counts.
func (in *inbound) settle(settled uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err != nil {
		return
	}
	flush := inboundSegment{settled: bounded(settled)}
	if n := in.segs.len(); n > 0 && in.segs.items[in.segs.head+n-1].settled > 0 {
		in.segs.items[in.segs.head+n-1] = flush
	} else {
		in.segs.push(flush)
	}
	in.wakeLocked()
}

// take waits for the next segment, and gives its sender credit for more.
func (in *inbound) take() (inboundSegment, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.segs.len() == 0 && in.err == nil {
		if in.wait == nil {
			in.wait = make(chan struct{})
		}
		wait := in.wait
		in.mu.Unlock()
		in.s.queue.letGo()
		<-wait
		in.mu.Lock()
	}
	if in.err != nil {
		return inboundSegment{}, in.err
	}
	g := in.segs.pop()
	in.queued(-int64(g.cost))
	in.grantLocked(int64(g.cost))
	return g, nil
}

// isReady reports whether take returns at once.
func (in *inbound) isReady() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.at.more || in.segs.len() > 0 || in.err != nil
}

// grantLocked counts what was read, and gives the sender credit for it now and then; not for an
// interim reply: the next one might get it, which has the same key.
func (in *inbound) grantLocked(read int64) {
	if in.read += read; !in.whole.Load() && !in.interim && in.read >= in.s.cfg.Limits.Window/2 {
		push(in.s.queue, &in.s.queue.grants, frame.Window{Message: in.key, Octets: uint64(in.read)})
		in.credit += in.read
		in.read = 0
	}
}

// drop has the rest of a message come in, to nobody: its sender is not told.
func (in *inbound) drop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err != nil {
		return
	}
	in.dropped = true
	for i := range in.segs.items[in.segs.head:] {
		in.grantLocked(int64(in.segs.items[in.segs.head+i].cost))
	}
	in.failLocked(errBodyClosed)
}

// fail drops what is queued of the message and has its reader get e.
func (in *inbound) fail(e *Error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.failLocked(e)
}

func (in *inbound) failLocked(e *Error) {
	if in.err != nil {
		return
	}
	in.err = e
	in.over.Store(true)
	for in.segs.len() > 0 {
		in.queued(-int64(in.segs.pop().cost))
	}
	in.wakeLocked()
}

// failed is why nothing more of the message is taken, nil if something is.
func (in *inbound) failed() *Error {
	if !in.over.Load() {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.err
}

var errBodyClosed = &Error{Code: Aborted, Err: errors.New("body is closed")}
