package shape

import "bytes"

// quick runs operations that are settled at one look: texts, values that a text behind them ends, rows, optionals and choices that begin with a text. It stops before the first that is
// another, does not fit, or may need more of the message: step decides about that one. Both give the same content.
func (s *Splitter) quick() {
	if s.inText || s.scan != (scanner{}) {
		return
	}
	g, in, ops, lits := &s.out, s.in, s.p.ops, s.p.lits
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
			lit, more := lits[head.lead.a:head.lead.b], head.max == 0 || l.rows < head.max
			if len(lit) > 0 && more && !head.fixed && l.from != s.gone+int64(at) && begins(in[at:], lit, head.nameEnd) {
				s.breakAt(at)
				if l.headerAt < 0 || l.group == maxGroup {
					run = 0
				}
				l.from = s.gone + int64(at)
				g.row()
				at, run = at+len(lit), run+int64(len(lit))
				pc = int(o.a) + 2
				continue
			}
		case opMaybe:
			lit := lits[o.lead.a:o.lead.b]
			if len(lit) == 0 || len(in)-at <= len(lit) {
				break
			}
			if begins(in[at:], lit, o.nameEnd) {
				g.bits(1, 1)
				s.breakAt(at)
				at, run = at+len(lit), int64(len(lit))
				pc += 2
			} else {
				g.bits(0, 1)
				s.breakAt(at)
				pc, run = int(o.b), 0
			}
			continue
		case opChoice:
			if i := s.quickChoice(o, in[at:]); i < len(o.alts) {
				alt := &o.alts[i]
				g.bits(uint32(i), o.bits)
				s.breakAt(at)
				run = int64(alt.lead.b - alt.lead.a)
				at += int(run)
				pc = int(alt.pc) + 1
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

// begins tells whether b begins with lit, and a name that ends there.
func begins(b, lit []byte, nameEnd bool) bool {
	return bytes.HasPrefix(b, lit) && (!nameEnd || len(b) > len(lit) && endsName(b[len(lit)]))
}

// quickChoice gives the alternative that comes, or their number if that takes more than a look.
func (s *Splitter) quickChoice(o *op, rest []byte) int {
	for i := range o.alts {
		alt := &o.alts[i]
		lit := s.p.lits[alt.lead.a:alt.lead.b]
		if len(lit) == 0 || len(rest) <= len(lit) {
			break
		}
		if begins(rest, lit, alt.nameEnd) {
			return i
		}
	}
	return len(o.alts)
}

// quickValue splits a value at the start of rest if the text behind it follows, and gives its length; else -1.
func (s *Splitter) quickValue(o *op, rest []byte) int {
	if o.a == o.b {
		return -1
	}
	g, lit := &s.out, s.p.lits[o.a:o.b]
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
