package program

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/items"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// quick runs operations that are settled at one look: texts, prefixes that stand again, values that
// a text behind them ends, rows, optionals and choices. It stops before the first that is another,
// does not fit, or may need more of the message: step decides about that one. Both give the same
// content.
func (s *Splitter) quick() {
	if s.inText || s.scan != (scanner{}) {
		return
	}
	g, in, ops, lits := &s.out, s.in, s.p.Ops(), s.p.Lits()
	at, pc, run := s.at, s.pc, s.run
	for g.err == nil {
		o := &ops[pc]
		switch o.Code {
		case code.OpText:
			if lit := lits[o.A:o.B]; bytes.HasPrefix(in[at:], lit) {
				at, run = at+len(lit), run+int64(len(lit))
				pc++
				continue
			}
		case code.OpAgain:
			if p := s.slots[o.A]; len(p) > 0 && bytes.HasPrefix(in[at:], p) {
				at, run = at+len(p), run+int64(len(p))
				pc++
				continue
			}
		case code.OpJump:
			pc = int(o.A)
			continue
		case code.OpValue:
			if n := s.quickValue(o, in[at:]); n >= 0 {
				at += n
				s.breakAt(at)
				run = int64(o.B - o.A)
				at += int(run)
				pc += 2
				continue
			}
		case code.OpNext:
			head, l := &ops[o.A], &g.loops[len(g.loops)-1]
			if head.Fixed || head.Max > 0 && l.rows >= head.Max || l.from == s.gone+int64(at) {
				break
			}
			if len(head.Alts) > 0 {
				i, n := s.lookChoice(head, at)
				if i == len(head.Alts) {
					break
				}
				s.breakAt(at)
				l.from = s.gone + int64(at)
				g.row()
				g.bits(uint32(i), head.Bits)
				pc = int(head.Alts[i].PC)
				run = int64(n)
				if n > 0 {
					at += n
					pc++
				}
				continue
			}
			if st, n := s.look(at, int(o.A)+1, head.Lead, head.NameEnd); st == next {
				s.breakAt(at)
				if l.headerAt < 0 || l.group == items.MaxGroup {
					run = 0
				}
				l.from = s.gone + int64(at)
				g.row()
				pc = int(o.A) + 1
				if n > 0 {
					at, run = at+n, run+int64(n)
					pc++
				}
				continue
			}
		case code.OpMaybe:
			st, n := s.look(at, pc+1, o.Lead, o.NameEnd)
			if st == starved {
				break
			}
			pc++
			if st == next {
				g.bits(1, 1)
			} else {
				g.bits(0, 1)
				pc = int(o.B)
			}
			s.breakAt(at)
			run = int64(n)
			if n > 0 {
				at += n
				pc++
			}
			continue
		case code.OpChoice:
			if i, n := s.lookChoice(o, at); i < len(o.Alts) {
				g.bits(uint32(i), o.Bits)
				s.breakAt(at)
				pc = int(o.Alts[i].PC)
				run = int64(n)
				if n > 0 {
					at += n
					pc++
				}
				continue
			}
		}
		break
	}
	s.at, s.pc, s.run = at, pc, run
}

// breakAt ends the segment if it stands for enough of the message.
func (s *Splitter) breakAt(at int) {
	if pos := s.gone + int64(at); pos-s.cut > segmentCut {
		s.cut = pos
		s.out.flush()
	}
}

// look reports whether what comes at at can begin the operations at pc; n bytes of it are the text
// there that decided.
func (s *Splitter) look(at, pc int, l code.Lead, nameEnd bool) (st state, n int) {
	if l.A == l.B {
		s.at = at
		return s.guard(pc, nameEnd), 0
	}
	lit, rest := s.p.Lits()[l.A:l.B], s.in[at:]
	switch {
	case len(rest) <= len(lit):
		return starved, 0
	case bytes.HasPrefix(rest, lit) && (!nameEnd || endsName(rest[len(lit)])):
		return next, len(lit)
	}
	return mismatch, 0
}

// lookChoice gives the alternative that comes, or their number if none surely does.
func (s *Splitter) lookChoice(o *code.Op, at int) (i, n int) {
	for i := range o.Alts {
		alt := &o.Alts[i]
		st, n := s.look(at, int(alt.PC), alt.Lead, alt.NameEnd)
		if st == starved {
			break
		}
		if st == next {
			return i, n
		}
	}
	return len(o.Alts), 0
}

// quickValue splits a value at the start of rest if the text behind it follows, and gives its
// length; else -1.
func (s *Splitter) quickValue(o *code.Op, rest []byte) int {
	if o.A == o.B {
		return -1
	}
	g, lit := &s.out, s.p.Lits()[o.A:o.B]
	if o.Type.Numeric() && len(rest) >= lexical.ScanRoom+len(lit) {
		if z, scale, n := lexical.ScanNumber(rest, o.Type.Scaled()); n > 0 && bytes.HasPrefix(rest[n:], lit) {
			g.decimal(z, scale, o.Type)
			return n
		}
	}
	n := bytes.IndexByte(rest, lit[0])
	if n < 0 || !bytes.HasPrefix(rest[n:], lit) {
		return -1
	}
	if o.Type == shape.TypeText || o.Type == shape.TypeString {
		g.textItem(rest[:n])
	} else {
		s.whole(o, rest[:n])
	}
	return n
}
