package shape

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrMismatch is what a strict [Splitter] returns for a message that does not fit its shape.
var ErrMismatch = errors.New("message does not fit the shape")

// MinSegment is the smallest segment size a splitter works with, in octets.
const MinSegment = 256

// Splitter takes the content out of one message after another (wire-format section 10). It reads a message in chunks of any size and holds of it only what it
// cannot decide about yet, of one in UTF-16 also the last chunk in UTF-8. It allocates nothing once its buffers have grown. Not safe for concurrent use.
type Splitter struct {
	p      *Program
	strict bool

	in    []byte // what of the message is not split yet begins at in[at:]
	at    int
	gone  int64 // octets of the message before in
	own   []byte
	final bool

	pc     int
	run    int64 // octets since the last item
	cut    int64 // where in the message the segment began
	ahead  ahead
	scan   scanner
	inText bool // a value's text is being handed out in pieces
	text   bool // the rest of the message is text
	slots  [][]byte
	last   []byte // prefix of the slot item before
	out    segmenter
	col    column
	bound  []byte // a guard's own slot
	piece  pieceSplitter
	narrow narrower
}

// ahead is what a flush settled of a text that had not come whole: octets from a place in the message on.
type ahead struct {
	from   int64
	octets int
}

// state is how an operation ended.
type state uint8

const (
	next     state = iota // go on
	starved               // more of the message is needed
	mismatch              // the message does not fit here
	ended
)

// Reset begins a message. Its segments of at most most octets (at least [MinSegment]) go to emit, which must not keep them; text tells those that stand in place of the rest (section 10.6).
// A strict splitter gives up with [ErrMismatch] where another goes on as text.
func (s *Splitter) Reset(p *Program, most int, strict bool, emit func(text bool, segment []byte) error) {
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
	if p.Encoding().isUTF16() {
		s.narrow.reset()
	}
}

// Emit hands further segments to another function.
func (s *Splitter) Emit(emit func(text bool, segment []byte) error) { s.out.emit = emit }

// Exceptions is how many values of the message so far are not in the canonical text of their type, and so travel as text.
func (s *Splitter) Exceptions() int { return s.out.rare }

// Lenient makes a strict splitter one that goes on as text.
func (s *Splitter) Lenient() { s.strict = false }

// Write splits a further chunk of the message. It copies what it has to keep.
func (s *Splitter) Write(chunk []byte) error {
	switch {
	case s.p.Encoding().isUTF16():
		s.narrowed(chunk, false)
		s.in = s.own
	case len(s.own) > 0:
		s.own = append(s.own, chunk...)
		s.in = s.own
	default:
		s.in, s.at = chunk, 0
	}
	err := s.split()
	rest := s.in[s.at:]
	s.gone += int64(s.at)
	s.own = append(s.own[:0], rest...)
	s.in, s.at = s.own, 0
	return err
}

// Close ends the message and hands out its last segment.
func (s *Splitter) Close() error {
	s.final = true
	if s.p.Encoding().isUTF16() {
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
	if s.p.Encoding().isUTF16() {
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
	s.own = s.narrow.append(s.own, s.p.Encoding(), chunk, final)
}

func (s *Splitter) pos() int64 { return s.gone + int64(s.at) }

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

// item notes that an item ends here, and ends the segment if it stands for enough of the message.
func (s *Splitter) item() state {
	s.run = 0
	if s.pos()-s.cut > segmentCut {
		s.cut = s.pos()
		s.out.flush()
	}
	return next
}

func (s *Splitter) step() state {
	o := &s.p.Ops()[s.pc]
	switch o.code {
	case opText:
		return s.matchText(o)
	case opAgain:
		return s.matchAgain(o)
	case opSlot:
		return s.slot(o)
	case opValue:
		return s.value(o)
	case opMaybe:
		return s.maybe(o)
	case opChoice:
		return s.choice(o)
	case opJump:
		s.pc = int(o.a)
		return next
	case opRows:
		if n := len(s.out.loops); n == 0 || s.out.loops[n-1].pc != int32(s.pc) {
			s.out.loops = append(s.out.loops, splitLoop{pc: int32(s.pc), headerAt: -1, from: -1})
		}
		return s.rows(o)
	case opNext:
		return s.rows(&s.p.Ops()[o.a])
	case opColumn:
		return s.column(o)
	}
	return ended
}

// literal compares what comes with lit.
func (s *Splitter) literal(lit []byte) state {
	rest := s.in[s.at:]
	if len(rest) >= len(lit) {
		if !bytes.Equal(rest[:len(lit)], lit) {
			return mismatch
		}
		s.at += len(lit)
		s.run += int64(len(lit))
		s.pc++
		return next
	}
	if s.final || !bytes.Equal(rest, lit[:len(rest)]) {
		return mismatch
	}
	return starved
}

func (s *Splitter) matchText(o *op) state { return s.literal(s.p.Lits()[o.a:o.b]) }

func (s *Splitter) matchAgain(o *op) state {
	if len(s.slots[o.a]) == 0 {
		return mismatch
	}
	return s.literal(s.slots[o.a])
}

// prefix reads a generated prefix at the start of b, up to what ends it.
func prefix(b []byte, final bool) ([]byte, state) {
	for i := 0; i < len(b) && i <= maxPrefix; i++ {
		if c := b[i]; isLetter(c) || c >= '0' && c <= '9' {
			continue
		}
		if !generated(b[:i]) {
			return nil, mismatch
		}
		return b[:i], next
	}
	if final || len(b) > maxPrefix {
		return nil, mismatch
	}
	return nil, starved
}

func (s *Splitter) slot(o *op) state {
	p, st := prefix(s.in[s.at:], s.final)
	if st != next {
		return st
	}
	var buf [maxPrefix + 1]byte
	s.out.ensure(maxPrefix + 3)
	if bytes.Equal(p, appendPredicted(buf[:0], s.last)) {
		s.out.bits(1, 1)
	} else {
		s.out.bits(0, 1)
		s.out.textItem(p)
	}
	s.slots[o.a] = append(s.slots[o.a][:0], p...)
	s.last = append(s.last[:0], p...)
	s.at += len(p)
	s.pc++
	return s.item()
}

func (s *Splitter) maybe(o *op) state {
	switch st := s.guard(s.pc+1, o.nameEnd); st {
	case next:
		s.out.bits(1, 1)
		s.pc++
	case mismatch:
		s.out.bits(0, 1)
		s.pc = int(o.b)
	default:
		return st
	}
	return s.item()
}

func (s *Splitter) choice(o *op) state {
	for i, a := range o.alts {
		switch st := s.begins(int(a.pc), a.nameEnd); st {
		case next:
			s.out.bits(uint32(i), o.bits)
			s.pc = int(a.pc)
			return s.item()
		case starved:
			return st
		}
	}
	return mismatch
}

// rows decides whether an array has a further row.
func (s *Splitter) rows(o *op) state {
	l := &s.out.loops[len(s.out.loops)-1]
	body := int(l.pc) + 1
	stalled := l.rows > 0 && l.from == s.pos()
	more := o.max == 0 || l.rows < o.max
	if o.fixed {
		if !more {
			return s.endRows(o)
		}
		l.rows++
		s.pc = body
		return next
	}
	st := mismatch
	if more && !stalled {
		st = s.guard(body, o.nameEnd)
	}
	switch st {
	case next:
		if s.pos()-s.cut > segmentCut {
			s.cut = s.pos()
			s.out.flush()
		}
		if l.headerAt < 0 || l.group == maxGroup {
			s.run = 0
		}
		l.from = s.pos()
		s.out.row()
		s.pc = body
	case mismatch:
		if l.rows < o.min {
			return mismatch
		}
		return s.endRows(o)
	}
	return st
}

func (s *Splitter) endRows(o *op) state {
	s.pc = int(o.b)
	if o.fixed {
		s.out.loops = s.out.loops[:len(s.out.loops)-1]
		return next
	}
	if l := &s.out.loops[len(s.out.loops)-1]; l.headerAt < 0 {
		s.run = 0
	}
	s.out.endRows()
	return next
}

// guard tells whether what comes can begin the operations at pc: their texts and prefixes, up to the first item. Where a choice comes first, one of its alternatives must begin there.
func (s *Splitter) guard(pc int, nameEnd bool) state {
	o := &s.p.Ops()[pc]
	if o.code != opChoice {
		return s.begins(pc, nameEnd)
	}
	for i := range o.alts {
		if st := s.begins(int(o.alts[i].pc), o.alts[i].nameEnd); st != mismatch {
			return st
		}
	}
	return mismatch
}

// begins is guard without a look into choices.
func (s *Splitter) begins(pc int, nameEnd bool) state {
	rest := s.in[s.at:]
	own := int32(-1)
	for ; ; pc++ {
		o := &s.p.Ops()[pc]
		var lit []byte
		switch o.code {
		case opText:
			lit = s.p.Lits()[o.a:o.b]
		case opAgain:
			if lit = s.slots[o.a]; o.a == own {
				lit = s.bound
			}
			if len(lit) == 0 {
				return mismatch
			}
		case opSlot:
			if own >= 0 {
				return next
			}
			p, st := prefix(rest, s.final)
			if st != next {
				return st
			}
			own, lit = o.a, p
			s.bound = append(s.bound[:0], p...)
		default:
			if !nameEnd || len(rest) > 0 {
				if nameEnd && !endsName(rest[0]) {
					return mismatch
				}
				return next
			}
			if s.final {
				return mismatch
			}
			return starved
		}
		if len(rest) < len(lit) {
			if s.final || !bytes.Equal(rest, lit[:len(rest)]) {
				return mismatch
			}
			return starved
		}
		if !bytes.Equal(rest[:len(lit)], lit) {
			return mismatch
		}
		rest = rest[len(lit):]
	}
}
