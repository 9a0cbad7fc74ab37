package streamer

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hhfr/hhfr/pkg/shape/program"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// segment is a piece of an incoming message's content that waits for its reader; or, with settled,
// that its sender waits (docs/wire-format.md, section 5.5).
type segment struct {
	head, last bool
	text       bool
	program    *program.Program
	content    []byte
	cost       int64
	settled    int64
}

// inbound is a message that comes in: the stream's reader appends segments, the goroutine that
// reads the message joins them.
type inbound struct {
	s       *Stream
	key     frame.Key
	interim bool
	x       *Exchange // of a request
	call    *call     // of a reply
	hasHead bool

	// The goroutine that reads the message only.
	total    int64
	headDone bool
	joins    [2]*program.Joiner // of head and body, while they are joined

	mu      sync.Mutex
	segs    fifo[segment]
	space   [2]segment // what most messages need
	credit  int64      // what the peer may still send of it, as it knows
	read    int64      // what was read, and is not granted anew
	started bool       // someone reads it
	whole   bool
	err     *Error        // nothing more will be taken
	dropped bool          // what comes is counted as read
	wait    chan struct{} // made by the goroutine that reads, closed by who has something for it
}

func newInbound(in *inbound, s *Stream, m *wire.Message) {
	in.s, in.key, in.interim, in.hasHead = s, m.Key, m.Interim, m.HasHead
	in.segs.items = in.space[:0]
	in.credit = s.cfg.Limits.Window
	m.User = in
}

func (in *inbound) wakeLocked() {
	if in.wait != nil {
		close(in.wait)
		in.wait = nil
	}
}

func (in *inbound) isWhole() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.whole
}

// taken is what came of the message and was not granted anew.
func (in *inbound) taken() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.s.cfg.Limits.Window - in.credit
}

// stop says that nothing more of the message is wanted; it is false if it is whole.
func (in *inbound) stop() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	was := in.whole
	in.whole = true
	return !was
}

// maxBeyond is how far a sender may go beyond its credit, in bytes: what one segment joins to, 4 MiB
// at most, and what the fragments of that cost, the shortest that there may be.
const maxBeyond = 5 << 20

// deliver queues what a fragment has for the goroutine that reads the message. last: the message is
// whole with it, which who has read it to its end must find it to be. beyond: its sender has no credit
// for that.
func (in *inbound) deliver(ev *wire.Event) (beyond bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.whole = in.whole || ev.Last
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
		if p.There {
			in.segs.push(segment{head: i == 0, last: p.Last, text: p.Text, program: p.Program, content: p.Content, cost: cost})
			cost = 0
		}
	}
	in.wakeLocked()
	return false
}

// queued counts content that waits for the application and that nobody else bounds.
func (in *inbound) queued(cost int64) {
	if in.x != nil && in.x.oneway {
		in.s.exchanges.queued.Add(cost)
	}
}

// settle queues that the sender of the message waits. Of flushes without content between them, which
// costs credit, the last one counts.
func (in *inbound) settle(settled uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err != nil {
		return
	}
	flush := segment{settled: bounded(settled)}
	if n := in.segs.len(); n > 0 && in.segs.items[in.segs.head+n-1].settled > 0 {
		in.segs.items[in.segs.head+n-1] = flush
	} else {
		in.segs.push(flush)
	}
	in.wakeLocked()
}

// take waits for the next segment, and gives its sender credit for more.
func (in *inbound) take() (segment, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.segs.len() == 0 && in.err == nil {
		if in.wait == nil {
			in.wait = make(chan struct{})
		}
		wait := in.wait
		in.mu.Unlock()
		<-wait
		in.mu.Lock()
	}
	if in.err != nil {
		return segment{}, in.err
	}
	g := in.segs.pop()
	in.queued(-g.cost)
	in.grantLocked(g.cost)
	return g, nil
}

// grantLocked counts what was read, and gives the sender credit for it now and then; not for an
// interim reply: the next one might get it, which has the same key.
func (in *inbound) grantLocked(read int64) {
	if in.read += read; !in.whole && !in.interim && in.read >= in.s.cfg.Limits.Window/2 {
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
		in.grantLocked(in.segs.items[in.segs.head+i].cost)
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
	for in.segs.len() > 0 {
		in.queued(-in.segs.pop().cost)
	}
	in.wakeLocked()
}

// failed is why nothing more of the message is taken, nil if something is.
func (in *inbound) failed() *Error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.err
}

var joiners = sync.Pool{New: func() any { return new(program.Joiner) }}

// join joins a segment behind dst.
func (in *inbound) join(dst []byte, g segment) ([]byte, error) {
	i := 1
	if g.head {
		i = 0
	}
	j := in.joins[i]
	switch {
	case g.settled > 0 && j != nil:
		return j.Settle(dst, g.settled)
	case g.program == nil && len(dst) == 0:
		return g.content, nil // nobody else has it
	case g.program == nil:
		return append(dst, g.content...), nil
	case j == nil:
		j = joiners.Get().(*program.Joiner)
		j.Reset(g.program)
		in.joins[i] = j
	}
	dst, err := j.Join(dst, g.content, g.text, g.last)
	if g.last && err == nil {
		joiners.Put(j)
		in.joins[i] = nil
	}
	return dst, err
}

// joinNext joins the next segment behind dst.
func (in *inbound) joinNext(dst []byte) (out []byte, last bool, err error) {
	g, err := in.take()
	if err != nil {
		return dst, false, err
	}
	before := len(dst)
	if out, err = in.join(dst, g); err != nil {
		return dst, false, in.refuse(frame.Malformed, &Error{Code: Malformed, Err: err})
	}
	in.total += int64(len(out) - before)
	if limit := in.s.cfg.Limits.MaxMessage; in.total > limit || g.head && len(out) > maxHead {
		return dst, false, in.refuse(frame.MessageTooLarge, tooLong(limit))
	}
	return out, g.last, nil
}

// readHead joins the head, nil if there is none.
func (in *inbound) readHead() (head []byte, err error) {
	for in.hasHead && !in.headDone {
		if head, in.headDone, err = in.joinNext(head); err != nil {
			return nil, err
		}
	}
	return head, nil
}

func (in *inbound) refuse(code frame.CancelCode, e *Error) error {
	in.s.exchanges.refuse(in, code, e)
	return in.failed()
}

// body reads the body of an incoming message.
type body struct {
	in   *inbound
	call *call       // of a reply
	stop func() bool // stops to watch the context of the call; nil: nobody does
	buf  []byte
	at   int
	last bool
	err  error
	over bool
}

// incoming is the body of a message as the application gets it.
func (s *Stream) incoming(b *body) io.ReadCloser {
	if s.inForm {
		return s.cfg.Incoming(b)
	}
	return b
}

// Read gives what is there, and waits if that is nothing.
func (b *body) Read(p []byte) (int, error) {
	for b.at == len(b.buf) {
		if err := b.more(b.buf[:0]); err != nil {
			return 0, err
		}
		b.at = 0
	}
	n := copy(p, b.buf[b.at:])
	b.at += n
	return n, nil
}

// more joins the next segment behind dst to be the new buffer.
func (b *body) more(dst []byte) error {
	switch {
	case b.err != nil:
		return b.err
	case b.last:
		b.err = io.EOF
	default:
		b.buf, b.last, b.err = b.in.joinNext(dst)
	}
	if b.last || b.err != nil {
		b.finish()
	}
	return b.err
}

func (b *body) finish() {
	if !b.over && b.stop != nil {
		b.stop()
	}
	b.over = true
}

func (b *body) readAll(limit int64) ([]byte, error) {
	b.buf, b.at = b.buf[b.at:], 0
	for int64(len(b.buf)) <= limit {
		if err := b.more(b.buf); errors.Is(err, io.EOF) {
			all := b.buf
			b.buf = nil
			return all, nil
		} else if err != nil {
			return b.buf, err
		}
	}
	return b.buf[:limit], tooLong(limit)
}

// Close gives up what has not been read.
func (b *body) Close() error {
	if !b.over && b.call != nil {
		_ = b.in.s.exchanges.abandon(b.call, errBodyClosed, true)
	}
	b.finish()
	if b.err == nil {
		b.err = errBodyClosed
	}
	b.buf, b.at = nil, 0
	return nil
}

var errBodyClosed = &Error{Code: Aborted, Err: errors.New("body is closed")}

func tooLong(limit int64) *Error {
	return &Error{Code: TooLarge, Err: fmt.Errorf("message above %d octets", limit)}
}
