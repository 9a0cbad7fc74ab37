package streamer

import (
	"errors"
	"fmt"
	"io"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// join is what Coder.NewJoin returns.
type join func(dst, segment []byte, text, last bool) ([]byte, error)

// begin is what Packer.NewUnpack returns, unpack what that returns.
type (
	begin  = func(lane uint64, alone bool, epoch uint64) func(dst, packed []byte, text, last bool, most int) ([]byte, error)
	unpack func(dst, packed []byte, text, last bool, most int) ([]byte, error)
)

// segment is a piece of an incoming message's content that waits for its reader.
type segment struct {
	data             []byte
	head, text, last bool
}

// inbound is a message that comes in: the reader appends segments, the goroutine that reads the message takes them.
type inbound struct {
	s    *Stream
	key  frame.Key
	x    *Exchange // of a request
	call *call     // of a reply

	hasHead bool      // set with the first fragment, then constant
	octets  int64     // of payload so far; the reader's only
	alone   bool      // the message is in one frame; the reader's only
	unpacks [2]unpack // of head and body, once begun; the reader's only

	// The goroutine that reads the message only.
	total    int64
	headDone bool

	// Below: under Stream.mu.
	joins   [2]join // of head and body, once begun
	segs    fifo[segment]
	space   [2]segment // what most messages need
	started bool       // someone reads it
	whole   bool
	err     *Error        // nothing more will be taken
	wait    chan struct{} // made by the goroutine that reads, closed by who has something for it
}

func (in *inbound) wakeLocked() {
	if in.wait != nil {
		close(in.wait)
		in.wait = nil
	}
}

func (in *inbound) isWhole() bool {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return in.whole
}

// deliverLocked queues the parts of a fragment for the goroutine that reads the message; they alias nothing else.
func (s *Stream) deliverLocked(in *inbound, p frame.Parts) {
	if in.err != nil {
		return
	}
	n := int64(len(p.Head.Segment) + len(p.Body.Segment))
	if s.queued.octets+n > s.mostQueued() || s.queued.weight > s.maxWeight {
		s.refuseLocked(in, frame.Busy, &Error{Code: Busy, Err: fmt.Errorf("%d octets are queued", s.queued.octets)})
		return
	}
	if p.HasHead {
		s.queueLocked(in, segment{data: p.Head.Segment, head: true, last: p.Head.Last})
	}
	if p.HasBody {
		s.queueLocked(in, segment{data: p.Body.Segment, text: p.Body.Text, last: p.Body.Last})
	}
	in.wakeLocked()
}

// mostQueued is what is really queued before a message is refused: half as much again as stated, since a sender lets its oldest message go on beside others that hold up to half of the room.
func (s *Stream) mostQueued() int64 { return s.cfg.Limits.MaxQueued + s.cfg.Limits.MaxQueued/2 }

func (s *Stream) queueLocked(in *inbound, g segment) {
	s.queued.add(len(g.data), segmentWeight)
	in.segs.push(g)
}

// take waits for the next segment.
func (in *inbound) take() (segment, join, error) {
	s := in.s
	s.mu.Lock()
	for in.segs.len() == 0 && in.err == nil {
		if in.wait == nil {
			in.wait = make(chan struct{})
		}
		wait := in.wait
		s.mu.Unlock()
		<-wait
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if in.err != nil {
		return segment{}, nil, in.err
	}
	g := in.segs.pop()
	s.queued.sub(len(g.data), segmentWeight)
	return g, in.joins[which(g.head)], nil
}

func which(head bool) int {
	if head {
		return 0
	}
	return 1
}

// joinNext joins the next segment behind dst.
func (in *inbound) joinNext(dst []byte) (out []byte, last bool, err error) {
	g, j, err := in.take()
	if err != nil {
		return dst, false, err
	}
	before := len(dst)
	if out, err = j(dst, g.data, g.text, g.last); err != nil {
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
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	in.s.refuseLocked(in, code, e)
	return in.err
}

// refuseLocked tells the other end that its message is not taken, and ends the exchange here. A request whose reply is not taken has been processed for all we
// know: its caller gets FateUnknown.
func (s *Stream) refuseLocked(in *inbound, code frame.CancelCode, e *Error) {
	if in.err != nil {
		return
	}
	s.controlLocked(frame.Cancel{Message: in.key, Refused: true, Code: code, Text: e.Code.String()})
	if in.call != nil {
		e = &Error{Code: FateUnknown, Err: e}
	}
	s.failInLocked(in, e)
	if in.x != nil {
		s.endExchangeLocked(in.x, e)
	}
	if in.call != nil {
		s.endCallLocked(in.call, e)
	}
}

// failInLocked drops what is queued of a message and has its reader get e.
func (s *Stream) failInLocked(in *inbound, e *Error) {
	if in.err != nil {
		return
	}
	in.err = e
	for in.segs.len() > 0 {
		s.queued.sub(len(in.segs.pop().data), segmentWeight)
	}
	in.wakeLocked()
}

// load is what waits for the application: octets of payload, and octets with what keeping them costs.
type load struct{ octets, weight int64 }

func (l *load) add(octets, cost int) {
	l.octets += int64(octets)
	l.weight += int64(octets + cost)
}

func (l *load) sub(octets, cost int) { l.add(-octets, -cost) }

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
		_ = b.in.s.abandon(b.call, errBodyClosed, true)
	}
	b.finish()
	if b.err == nil {
		b.err = errBodyClosed
	}
	b.buf, b.at = nil, 0
	return nil
}

var errBodyClosed = &Error{Code: Aborted, Err: errors.New("body is closed")}
