package streamer

import (
	"errors"
	"io"
	"sync"

	"github.com/hhfr/hhfr/pkg/shape/program"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

var joiners = sync.Pool{New: func() any { return new(program.Joiner) }}

// join joins a segment behind dst.
func (in *inbound) join(dst []byte, g inboundSegment) ([]byte, error) {
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
