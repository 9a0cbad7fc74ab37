package streamer

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/reuse"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
)

var joiners = sync.Pool{New: func() any { return new(program.Joiner) }}

// joinedAtOnce is how much of a segment is joined at a time, in bytes: some bytes of content may
// come to megabytes, and who waits for them may read nothing.
const joinedAtOnce = 32 << 10

// join joins a segment behind dst, or the beginning of it.
func (in *inbound) join(dst []byte, g *inboundSegment) (_ []byte, err error) {
	at := &in.at
	at.part, at.last, at.buffer = 1, g.last, g.buffer
	if g.head {
		at.part = 0
	}
	j := in.joins[at.part]
	switch {
	case g.settled > 0 && j != nil:
		return j.Settle(dst, g.settled)
	case g.program == nil:
		return append(dst, g.content...), nil
	case j == nil:
		j = joiners.Get().(*program.Joiner)
		j.Reset(g.program)
		in.joins[at.part] = j
	}
	dst, at.more, err = j.JoinSome(dst, g.content, g.text, g.last, joinedAtOnce)
	return dst, err
}

// joinMore goes on with the segment that is not joined to its end.
func (in *inbound) joinMore(dst []byte) (_ []byte, err error) {
	at := &in.at
	at.more = false
	if e := in.failed(); e != nil {
		return dst, e
	}
	dst, at.more, err = in.joins[at.part].JoinMore(dst)
	return dst, err
}

// joinNext joins more behind dst: the next segment, or a part of it.
func (in *inbound) joinNext(dst []byte) (out []byte, last bool, err error) {
	if in.at.more {
		out, err = in.joinMore(dst)
		return in.took(dst, out, err)
	}
	g, err := in.take()
	if err != nil {
		return dst, false, err
	}
	return in.joinSegment(dst, &g)
}

func (in *inbound) joinSegment(dst []byte, g *inboundSegment) (out []byte, last bool, err error) {
	out, err = in.join(dst, g)
	return in.took(dst, out, err)
}

// took takes note of what was joined behind dst.
func (in *inbound) took(dst, out []byte, err error) (_ []byte, last bool, _ error) {
	at := &in.at
	if !at.more {
		in.joined(err)
	}
	if err != nil {
		return dst, false, in.refuse(frame.Malformed, &Error{Code: Malformed, Err: err})
	}
	last = at.last && !at.more
	in.total += int64(len(out) - len(dst))
	in.count(len(out)-len(dst), last && at.part == 1)
	if limit := in.s.cfg.Limits.MaxMessage; in.total > limit || at.part == 0 && len(out) > maxHead {
		return dst, false, in.refuse(frame.MessageTooLarge, tooLong(limit))
	}
	return out, last, nil
}

// joined gives back what a segment had that is joined; err is why it was not.
func (in *inbound) joined(err error) {
	at := &in.at
	wire.Release(at.buffer)
	at.buffer = nil
	if j := in.joins[at.part]; j != nil && at.last && err == nil {
		joiners.Put(j)
		in.joins[at.part] = nil
	}
}

// count counts what was joined; ends: the body ends with it.
func (in *inbound) count(octets int, ends bool) {
	c := in.s.cfg.Carried
	if c == nil {
		return
	}
	n := int64(octets)
	if ends && !in.hasHead {
		n += in.s.cfg.Implied.of(in.key.Reply)
	}
	c.Received.Bytes.Add(n)
}

// readHead joins the head, nil if there is none. It is shared with other messages.
func (in *inbound) readHead() ([]byte, error) {
	if !in.hasHead || in.headDone {
		return nil, nil
	}
	g, err := in.take()
	if err != nil {
		return nil, err
	}
	known := &in.s.heads[in.key.Lane%lastHeads]
	whole := g.last && !g.text && len(g.content) <= maxLastHead
	var next *joinedHead
	if whole {
		if last := known.last.Load(); last != nil && last.isOf(in.key.Lane, in.clients, g.program, g.content) {
			wire.Release(g.buffer)
			in.total, in.headDone = in.total+int64(len(last.head)), true
			in.count(len(last.head), false)
			return last.head, nil
		}
		next = &joinedHead{lane: in.key.Lane, clients: in.clients, program: g.program, content: string(g.content)}
	}
	own := joined.Get(0)
	defer joined.Put(own)
	for own.Octets, in.headDone, err = in.joinSegment(own.Octets, &g); err == nil && !in.headDone; {
		own.Octets, in.headDone, err = in.joinNext(own.Octets)
	}
	if err != nil {
		return nil, err
	}
	head := slices.Clip(bytes.Clone(own.Octets))
	if next != nil && len(head) <= maxLastHead {
		next.head = head
		known.last.Store(next)
	}
	return head, nil
}

func (in *inbound) refuse(code frame.CancelCode, e *Error) error {
	in.s.exchanges.refuse(in, code, e)
	return in.failed()
}

// joined are the buffers that segments are joined in. A text is copied out at its size: what joins
// it reserves room by what there may be at most. A short segment comes to a few times the longest
// fragment.
var joined = reuse.Buffers{Most: 128 << 10}

// body reads the body of an incoming message.
type body struct {
	in   *inbound
	call *call         // of a reply
	stop func() bool   // stops to watch the context of the call; nil: nobody does
	own  *reuse.Buffer // what the last segment joined to; nil: none was read
	at   int           // how much of that was read
	last bool
	over bool
	err  error
}

// Read gives what is there, and waits if that is nothing.
func (b *body) Read(p []byte) (int, error) {
	for len(b.ahead()) == 0 {
		if err := b.more(); err != nil {
			return 0, err
		}
	}
	return b.copy(p), nil
}

// readReady is Read without waiting.
func (b *body) readReady(p []byte) (int, error) {
	for len(b.ahead()) == 0 {
		if !b.last && b.err == nil && !b.in.isReady() {
			return 0, nil
		}
		if err := b.more(); err != nil {
			return 0, err
		}
	}
	return b.copy(p), nil
}

// copy gives what was joined. With the last of it the buffer goes back: many who know the length,
// or the end tag, never ask for more.
func (b *body) copy(p []byte) int {
	n := copy(p, b.ahead())
	if b.at += n; b.last && len(b.ahead()) == 0 {
		_ = b.more() // the end, which Read gives
	}
	return n
}

// ahead is what was joined and not read.
func (b *body) ahead() []byte {
	if b.own == nil {
		return nil
	}
	return b.own.Octets[b.at:]
}

// more joins the next segment, when all before it was read. At the end the buffer goes back.
func (b *body) more() error {
	own := b.own
	switch {
	case b.err != nil:
		return b.err
	case b.last:
		b.err, b.own = io.EOF, nil
		joined.Put(own)
		return b.err
	case own == nil:
		own = joined.Get(0)
	}
	own.Octets, b.last, b.err = b.in.joinNext(own.Octets[:0])
	b.own, b.at = own, 0
	if b.last || b.err != nil {
		b.finish()
	}
	return b.err
}

// gather joins all segments of a body that is whole, and returns how long it is; -1 if it is not
// whole, or longer than limit. Read gives what was joined.
func (b *body) gather(limit int) int64 {
	if b.own != nil || b.err != nil || !b.in.whole.Load() || !b.in.isReady() {
		return -1
	}
	_ = b.more() // Read gives an error again
	for !b.last && b.err == nil && len(b.own.Octets) <= limit {
		b.longer()
	}
	if !b.last || b.err != nil {
		return -1
	}
	return int64(len(b.own.Octets))
}

// longer joins more behind what was joined and not read.
func (b *body) longer() {
	b.own.Octets, b.last, b.err = b.in.joinNext(b.own.Octets)
	if b.last || b.err != nil {
		b.finish()
	}
}

// rest is all that is left of a body if that is short and here, in one segment: as the body of
// another message it is one in memory. It holds until discard.
func (b *body) rest() (all []byte, ok bool) {
	if b.own == nil && b.err == nil && b.in.isReady() {
		_ = b.more() // Read gives the error again
	}
	for b.in.at.more && b.err == nil && len(b.ahead()) <= inlineBody {
		b.longer()
	}
	all = b.ahead()
	return all, b.last && b.err == nil && len(all) <= inlineBody
}

// discard passes over what rest gave, and gives the buffer back.
func (b *body) discard() {
	if b.own != nil { // it was not closed meanwhile
		b.at = len(b.own.Octets)
		_ = b.more()
	}
}

func (b *body) finish() {
	if !b.over && b.stop != nil {
		b.stop()
	}
	b.over = true
}

func (b *body) readAll(limit int64) ([]byte, error) {
	var all []byte
	for {
		piece := b.ahead()
		if room := limit - int64(len(all)); int64(len(piece)) > room {
			b.at += int(room)
			return append(all, piece[:room]...), tooLong(limit)
		}
		all = append(all, piece...)
		b.at += len(piece)
		if err := b.more(); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
	}
}

// Close gives up what has not been read. The buffer is not given back: who closes a body that
// somebody reads harms nobody else.
func (b *body) Close() error {
	if !b.over && b.call != nil {
		_ = b.in.s.exchanges.abandon(b.call, errBodyClosed, true)
	}
	b.finish()
	if b.err == nil {
		b.err = errBodyClosed
	}
	b.own = nil
	return nil
}
