package program

import (
	"bytes"
	"errors"

	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/items"
	"github.com/hhfr/hhfr/internal/shape/lexical"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// ErrMismatch is what a strict [Splitter] returns for a message that does not fit its shape.
var ErrMismatch = errors.New("message does not fit the shape")

// MinSegment is the smallest segment size a splitter works with, in bytes.
const MinSegment = 256

// Splitter takes the content out of one message after another (wire-format section 10). It reads a
// message in chunks of any size and holds of it only what it cannot decide about yet, of one in
// UTF-16 also the last chunk in UTF-8. It allocates nothing once its buffers have grown. Not safe
// for concurrent use.
type Splitter struct {
	p      *code.Code
	strict bool

	in    []byte // what of the message is not split yet begins at in[at:]
	at    int
	gone  int64 // bytes of the message before in
	own   []byte
	final bool

	pc     int
	run    int64 // bytes since the last item
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
	narrow lexical.Narrower
}

// ahead is what a flush settled of a text that had not come whole: bytes from a place in the
// message on.
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

func (s *Splitter) pos() int64 { return s.gone + int64(s.at) }

// item notes that an item ends here, and ends the segment if it stands for enough of the message.
func (s *Splitter) item() state {
	s.run = 0
	if s.pos()-s.cut > segmentCut {
		s.cut = s.pos()
		s.out.flush()
	}
	return next
}

func endsName(c byte) bool { return xmltext.IsNameEnd(c) }

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

func (s *Splitter) matchText(o *code.Op) state { return s.literal(s.p.Lits()[o.A:o.B]) }

func (s *Splitter) matchAgain(o *code.Op) state {
	if len(s.slots[o.A]) == 0 {
		return mismatch
	}
	return s.literal(s.slots[o.A])
}

// prefix reads a generated prefix at the start of b, up to what ends it.
func prefix(b []byte, final bool) ([]byte, state) {
	for i := 0; i < len(b) && i <= lexical.MaxPrefix; i++ {
		if c := b[i]; lexical.IsLetter(c) || c >= '0' && c <= '9' {
			continue
		}
		if !lexical.Generated(b[:i]) {
			return nil, mismatch
		}
		return b[:i], next
	}
	if final || len(b) > lexical.MaxPrefix {
		return nil, mismatch
	}
	return nil, starved
}

func (s *Splitter) slot(o *code.Op) state {
	p, st := prefix(s.in[s.at:], s.final)
	if st != next {
		return st
	}
	var buf [lexical.MaxPrefix + 1]byte
	s.out.ensure(lexical.MaxPrefix + 3)
	if bytes.Equal(p, lexical.AppendPredicted(buf[:0], s.last)) {
		s.out.bits(1, 1)
	} else {
		s.out.bits(0, 1)
		s.out.textItem(p)
	}
	s.slots[o.A] = append(s.slots[o.A][:0], p...)
	s.last = append(s.last[:0], p...)
	s.at += len(p)
	s.pc++
	return s.item()
}

func (s *Splitter) maybe(o *code.Op) state {
	switch st := s.guard(s.pc+1, o.NameEnd); st {
	case next:
		s.out.bits(1, 1)
		s.pc++
	case mismatch:
		s.out.bits(0, 1)
		s.pc = int(o.B)
	default:
		return st
	}
	return s.item()
}

func (s *Splitter) choice(o *code.Op) state {
	for i, a := range o.Alts {
		switch st := s.begins(int(a.PC), a.NameEnd); st {
		case next:
			s.out.bits(uint32(i), o.Bits)
			s.pc = int(a.PC)
			return s.item()
		case starved:
			return st
		}
	}
	return mismatch
}

// rows decides whether an array has a further row.
func (s *Splitter) rows(o *code.Op) state {
	l := &s.out.loops[len(s.out.loops)-1]
	body := int(l.pc) + 1
	stalled := l.rows > 0 && l.from == s.pos()
	more := o.Max == 0 || l.rows < o.Max
	if o.Fixed {
		if !more {
			return s.endRows(o)
		}
		l.rows++
		s.pc = body
		return next
	}
	st := mismatch
	if more && !stalled {
		st = s.guard(body, o.NameEnd)
	}
	switch st {
	case next:
		if s.pos()-s.cut > segmentCut {
			s.cut = s.pos()
			s.out.flush()
		}
		if l.headerAt < 0 || l.group == items.MaxGroup {
			s.run = 0
		}
		l.from = s.pos()
		s.out.row()
		s.pc = body
	case mismatch:
		if l.rows < o.Min {
			return mismatch
		}
		return s.endRows(o)
	}
	return st
}

func (s *Splitter) endRows(o *code.Op) state {
	s.pc = int(o.B)
	if o.Fixed {
		s.out.loops = s.out.loops[:len(s.out.loops)-1]
		return next
	}
	if l := &s.out.loops[len(s.out.loops)-1]; l.headerAt < 0 {
		s.run = 0
	}
	s.out.endRows()
	return next
}

// guard reports whether what comes can begin the operations at pc: their texts and prefixes, up to
// the first item. Where a choice comes first, one of its alternatives must begin there.
func (s *Splitter) guard(pc int, nameEnd bool) state {
	o := &s.p.Ops()[pc]
	if o.Code != code.OpChoice {
		return s.begins(pc, nameEnd)
	}
	for i := range o.Alts {
		if st := s.begins(int(o.Alts[i].PC), o.Alts[i].NameEnd); st != mismatch {
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
		switch o.Code {
		case code.OpText:
			lit = s.p.Lits()[o.A:o.B]
		case code.OpAgain:
			if lit = s.slots[o.A]; o.A == own {
				lit = s.bound
			}
			if len(lit) == 0 {
				return mismatch
			}
		case code.OpSlot:
			if own >= 0 {
				return next
			}
			p, st := prefix(rest, s.final)
			if st != next {
				return st
			}
			own, lit = o.A, p
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
