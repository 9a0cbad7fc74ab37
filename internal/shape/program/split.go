package program

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
)

// Reset begins a message. Its segments of at most most bytes (at least [MinSegment]) go to emit,
// which must not keep them; text tells those that stand in place of the rest (section 10.6). A
// strict splitter gives up with [ErrMismatch] where another goes on as text.
func (s *Splitter) Reset(program *Program, most int, strict bool, emit func(text bool, segment []byte) error) {
	p := (*code.Code)(program)
	s.p, s.strict = p, strict
	s.in, s.at, s.gone, s.own, s.final = nil, 0, 0, s.own[:0], false
	s.pc, s.run, s.cut, s.inText, s.text, s.ahead = 0, 0, 0, false, false, ahead{}
	s.scan = scanner{}
	for len(s.slots) < p.Shape().Slots() {
		s.slots = append(s.slots, nil)
	}
	for i := range s.slots {
		s.slots[i] = s.slots[i][:0]
	}
	s.last = s.last[:0]
	s.out.reset(max(most, MinSegment), emit)
	s.col.reset()
	s.piece.reset()
	if p.Encoding().IsUTF16() {
		s.narrow.Reset()
	}
}

// Emit hands further segments to another function.
func (s *Splitter) Emit(emit func(text bool, segment []byte) error) { s.out.emit = emit }

// Exceptions is how many values of the message so far are not in the canonical text of their type,
// and so travel as text.
func (s *Splitter) Exceptions() int { return s.out.rare }

// Lenient makes a strict splitter one that goes on as text.
func (s *Splitter) Lenient() { s.strict = false }

// Write splits a further chunk of the message. It copies what it has to keep.
func (s *Splitter) Write(chunk []byte) error {
	switch {
	case s.p.Encoding().IsUTF16():
		s.narrowed(chunk, false)
		s.in = s.own
	case len(s.own) > 0:
		s.own = append(s.own, chunk...)
		s.in = s.own
	default:
		s.in, s.at = chunk, 0
	}
	err := s.split()
	if err != nil { // nothing follows
		s.in, s.at = nil, 0
		return err
	}
	rest := s.in[s.at:]
	if cap(s.own) > maxOwn && len(rest) <= maxOwn/4 {
		s.own = nil // the rest of the message may take its time
	}
	s.gone += int64(s.at)
	s.own = append(s.own[:0], rest...)
	s.in, s.at = s.own, 0
	return err
}

// Close ends the message and hands out its last segment.
func (s *Splitter) Close() error {
	s.final = true
	if s.p.Encoding().IsUTF16() {
		s.narrowed(nil, true)
		s.in = s.own
	}
	if err := s.split(); err != nil {
		return err
	}
	if !s.text {
		s.out.out()
	}
	return s.out.err
}

// Split splits a whole message.
func (s *Splitter) Split(message []byte) error {
	if s.p.Encoding().IsUTF16() {
		s.own = s.own[:0]
		s.narrowed(message, true)
		message = s.own
	}
	s.in, s.at, s.final = message, 0, true
	err := s.split()
	if err == nil && !s.text {
		s.out.out()
		err = s.out.err
	}
	s.in = nil
	return err
}

// narrowed appends a chunk to what is kept, in UTF-8.
func (s *Splitter) narrowed(chunk []byte, final bool) {
	s.own = s.narrow.Append(s.own, s.p.Encoding(), chunk, final)
}

// Flush hands out what was written so far. settled is how much of the texts behind the last item is
// among it, for [Joiner.Settle]: what a joiner gives out is then all that was written, but for the
// beginning of a number, a name or the like, which waits for the rest of it. force: that goes out
// as well, and the rest of the message as text.
func (s *Splitter) Flush(force bool) (settled int64, err error) {
	if s.text {
		return 0, s.out.err
	}
	o := &s.p.Ops()[s.pc]
	switch {
	case o.Code == code.OpValue && s.at < len(s.in):
		s.partOfValue(o, force)
	case o.Code == code.OpColumn && len(s.col.zigzags) > 0:
		s.group(o, true)
	}
	if len(s.out.seg) > 0 || !s.out.begun {
		s.out.flush()
		s.cut = s.pos()
	}
	rest := int64(len(s.in) - s.at)
	switch {
	case rest == 0 || s.out.err != nil:
		return s.run, s.out.err
	case o.Code == code.OpText || o.Code == code.OpAgain:
		s.ahead = ahead{s.pos(), int(rest)} // the beginning of a text that fits
		return s.run + rest, nil
	case force:
		return 0, s.escape()
	}
	return s.run, nil
}

// partOfValue hands out what is there of a value whose end is not in sight: the beginning of a
// text, or of what travels in pieces; of anything else only if it must be.
func (s *Splitter) partOfValue(o *code.Op, force bool) {
	n, whole := s.scan.find(s.in[s.at:], o.Until, false)
	if whole || n == 0 {
		return
	}
	switch {
	case o.Type.Pieces():
		s.takePieces(o, n)
	case s.inText || force || o.Type == shape.TypeText || o.Type == shape.TypeString || o.Type == shape.TypeOpen:
		s.takeText(o, n)
	}
}

func (s *Splitter) split() error {
	if s.text {
		return s.asText(s.in[s.at:])
	}
	for s.out.err == nil {
		if s.quick(); s.out.err != nil {
			break
		}
		switch s.step() {
		case starved:
			return s.out.err
		case ended:
			if s.at == len(s.in) {
				return s.out.err
			}
			return s.escape()
		case mismatch:
			return s.escape()
		}
	}
	return s.out.err
}

func (s *Splitter) step() state {
	o := &s.p.Ops()[s.pc]
	switch o.Code {
	case code.OpText:
		return s.matchText(o)
	case code.OpAgain:
		return s.matchAgain(o)
	case code.OpSlot:
		return s.slot(o)
	case code.OpValue:
		return s.value(o)
	case code.OpMaybe:
		return s.maybe(o)
	case code.OpChoice:
		return s.choice(o)
	case code.OpJump:
		s.pc = int(o.A)
		return next
	case code.OpRows:
		if n := len(s.out.loops); n == 0 || s.out.loops[n-1].pc != int32(s.pc) {
			s.out.loops = append(s.out.loops, splitLoop{pc: int32(s.pc), headerAt: -1, from: -1})
		}
		return s.rows(o)
	case code.OpNext:
		return s.rows(&s.p.Ops()[o.A])
	case code.OpColumn:
		return s.column(o)
	}
	return ended
}

// escape goes on as text from here (wire-format section 10.6).
func (s *Splitter) escape() error {
	if s.strict {
		return ErrMismatch
	}
	if s.ahead.from == s.pos() {
		s.at += s.ahead.octets
		s.run += int64(s.ahead.octets)
	}
	s.out.flush()
	s.text = true
	s.out.seg = binary.AppendUvarint(s.out.seg[:0], uint64(s.run))
	rest := s.in[s.at:]
	n := min(len(rest), s.out.max+1-len(s.out.seg))
	s.out.seg = append(s.out.seg, rest[:n]...)
	if s.out.err == nil {
		s.out.err = s.out.emit(true, s.out.seg)
	}
	s.at += n
	return s.asText(rest[n:])
}

func (s *Splitter) asText(rest []byte) error {
	for len(rest) > 0 && s.out.err == nil {
		n := min(len(rest), s.out.max+1)
		s.out.err = s.out.emit(true, rest[:n])
		rest = rest[n:]
	}
	s.at = len(s.in)
	return s.out.err
}
