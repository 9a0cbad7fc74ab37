package shape

import "bytes"

// quick runs operations that are settled at one look: texts, prefixes that stand again, values that a text behind them ends, rows, optionals and choices. It stops before the first that is
// another, does not fit, or may need more of the message: step decides about that one. Both give the same content.
func (s *Splitter) quick() {
	if s.inText || s.scan != (scanner{}) {
		return
	}
	g, in, ops, lits := &s.out, s.in, s.p.Ops(), s.p.Lits()
	at, pc, run := s.at, s.pc, s.run
	for g.err == nil {
		o := &ops[pc]
		switch o.code {
		case opText:
			if lit := lits[o.a:o.b]; bytes.HasPrefix(in[at:], lit) {
				at, run = at+len(lit), run+int64(len(lit))
				pc++
				continue
			}
		case opAgain:
			if p := s.slots[o.a]; len(p) > 0 && bytes.HasPrefix(in[at:], p) {
				at, run = at+len(p), run+int64(len(p))
				pc++
				continue
			}
		case opJump:
			pc = int(o.a)
			continue
		case opValue:
			if n := s.quickValue(o, in[at:]); n >= 0 {
				at += n
				s.breakAt(at)
				run = int64(o.b - o.a)
				at += int(run)
				pc += 2
				continue
			}
		case opNext:
			head, l := &ops[o.a], &g.loops[len(g.loops)-1]
			if head.fixed || head.max > 0 && l.rows >= head.max || l.from == s.gone+int64(at) {
				break
			}
			if len(head.alts) > 0 {
				i, n := s.lookChoice(head, at)
				if i == len(head.alts) {
					break
				}
				s.breakAt(at)
				l.from = s.gone + int64(at)
				g.row()
				g.bits(uint32(i), head.bits)
				pc = int(head.alts[i].pc)
				run = int64(n)
				if n > 0 {
					at += n
					pc++
				}
				continue
			}
			if st, n := s.look(at, int(o.a)+1, head.lead, head.nameEnd); st == next {
				s.breakAt(at)
				if l.headerAt < 0 || l.group == maxGroup {
					run = 0
				}
				l.from = s.gone + int64(at)
				g.row()
				pc = int(o.a) + 1
				if n > 0 {
					at, run = at+n, run+int64(n)
					pc++
				}
				continue
			}
		case opMaybe:
			st, n := s.look(at, pc+1, o.lead, o.nameEnd)
			if st == starved {
				break
			}
			pc++
			if st == next {
				g.bits(1, 1)
			} else {
				g.bits(0, 1)
				pc = int(o.b)
			}
			s.breakAt(at)
			run = int64(n)
			if n > 0 {
				at += n
				pc++
			}
			continue
		case opChoice:
			if i, n := s.lookChoice(o, at); i < len(o.alts) {
				g.bits(uint32(i), o.bits)
				s.breakAt(at)
				pc = int(o.alts[i].pc)
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

// look tells whether what comes at at can begin the operations at pc; n octets of it are the text there that decided.
func (s *Splitter) look(at, pc int, l lead, nameEnd bool) (st state, n int) {
	if l.a == l.b {
		s.at = at
		return s.guard(pc, nameEnd), 0
	}
	lit, rest := s.p.Lits()[l.a:l.b], s.in[at:]
	switch {
	case len(rest) <= len(lit):
		return starved, 0
	case bytes.HasPrefix(rest, lit) && (!nameEnd || endsName(rest[len(lit)])):
		return next, len(lit)
	}
	return mismatch, 0
}

// lookChoice gives the alternative that comes, or their number if none surely does.
func (s *Splitter) lookChoice(o *op, at int) (i, n int) {
	for i := range o.alts {
		alt := &o.alts[i]
		st, n := s.look(at, int(alt.pc), alt.lead, alt.nameEnd)
		if st == starved {
			break
		}
		if st == next {
			return i, n
		}
	}
	return len(o.alts), 0
}

// quickValue splits a value at the start of rest if the text behind it follows, and gives its length; else -1.
func (s *Splitter) quickValue(o *op, rest []byte) int {
	if o.a == o.b {
		return -1
	}
	g, lit := &s.out, s.p.Lits()[o.a:o.b]
	if o.typ.numeric() && len(rest) >= scanRoom+len(lit) {
		if z, scale, n := scanNumber(rest, o.typ.scaled()); n > 0 && bytes.HasPrefix(rest[n:], lit) {
			g.decimal(z, scale, o.typ)
			return n
		}
	}
	n := bytes.IndexByte(rest, lit[0])
	if n < 0 || !bytes.HasPrefix(rest[n:], lit) {
		return -1
	}
	if o.typ == TypeText || o.typ == TypeString {
		g.textItem(rest[:n])
	} else {
		s.whole(o, rest[:n])
	}
	return n
}
