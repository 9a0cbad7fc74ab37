package program

import (
	"bytes"
	"slices"

	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// column splits an array of numbers: row after row into a group, and the group into the segment
// when it is full or the array at its end.
func (s *Splitter) column(o *code.Op) state {
	c := &s.col
	if !c.open {
		c.reset()
		c.open, c.from = true, s.pos()
	}
	for {
		full := len(c.zigzags) >= c.room(s.out.max) || s.pos()-c.from > segmentCut/2
		if full && len(c.zigzags) > 0 {
			s.group(o, true)
		}
		if o.A >= 0 && s.plainRows(o, s.p.Row(o.A)) {
			continue
		}
		st := mismatch
		if o.Max == 0 || c.total < o.Max {
			st = s.columnRow(o)
		}
		switch {
		case st == starved || s.out.err != nil:
			return starved
		case st == next:
			continue
		case c.total < o.Min:
			s.group(o, true)
			return mismatch
		}
		s.group(o, false)
		c.open = false
		s.pc = int(o.B)
		return next
	}
}

// group hands the group over to the segment.
func (s *Splitter) group(o *code.Op, more bool) {
	if more && len(s.col.zigzags) == 0 {
		return
	}
	s.col.packed = s.col.append(s.col.packed[:0], more, o.Type.Scaled())
	s.out.ensure(len(s.col.packed))
	s.out.seg = append(s.out.seg, s.col.packed...)
	if len(s.col.zigzags) == 0 {
		s.run = 0
	}
	s.col.clear()
	s.col.from = s.pos()
	if s.pos()-s.cut > segmentCut {
		s.cut = s.pos()
		s.out.flush()
	}
}

// plainRows splits rows of a text, a number in its usual form, and a text that ends it, as many as
// come and have room in the group; it reports whether any did.
func (s *Splitter) plainRows(o *code.Op, row *code.PlainRow) bool {
	c := &s.col
	before, behind, between := row.Before, row.Behind, row.Between
	rows := len(c.zigzags)
	most := c.room(s.out.max)
	if o.Max > 0 {
		most = int(min(uint64(most), uint64(rows)+o.Max-c.total))
	}
	in := s.in
	if left := segmentCut/2 - int(s.pos()-c.from); left < len(in)-s.at {
		in = in[:s.at+max(left, 0)]
	}
	if rows >= most || !bytes.HasPrefix(in[s.at:], before) {
		return false
	}
	c.zigzags, c.scales = slices.Grow(c.zigzags, most-rows), slices.Grow(c.scales, most-rows)
	zigzags, scales := c.zigzags[:most], c.scales[:most]
	union, low, high := c.union, c.low, c.high
	from, scaled := rows, o.Type.Scaled()
	at, end := s.at+len(before), s.at // where a number begins, and where the last row ended
	for rows < most && at+lexical.ScanRoom+len(between) <= len(in) {
		z, scale, n := lexical.ScanNumber(in[at:], scaled)
		at += n
		more := n > 0 && string(in[at:at+len(between)]) == string(between)
		if !more && (n == 0 || !bytes.HasPrefix(in[at:], behind)) {
			break
		}
		zigzags[rows], scales[rows] = z, scale
		rows++
		union |= z
		low, high = min(low, scale), max(high, scale)
		if end = at + len(behind); !more {
			break
		}
		at += len(between)
	}
	c.zigzags, c.scales, c.union, c.low, c.high = zigzags[:rows], scales[:rows], union, low, high
	if rows == from {
		return false
	}
	c.total += uint64(rows - from)
	s.at = end
	s.run = int64(len(behind))
	return true
}

// columnRow splits one row; a row that does not fit, or is not whole yet, is not begun.
func (s *Splitter) columnRow(o *code.Op) state {
	at, run, pc := s.at, s.run, s.pc
	var text []byte
	st := next
	for s.pc++; st == next; {
		switch step := &s.p.Ops()[s.pc]; step.Code {
		case code.OpText:
			st = s.matchText(step)
		case code.OpAgain:
			st = s.matchAgain(step)
		case code.OpNumber:
			text, st = s.columnText(step)
		default:
			s.pc = pc
			s.col.total++
			if n, ok := lexical.ParseNumber(text, o.Type.Scaled()); ok {
				s.col.add(n)
			} else {
				s.col.exception(text)
				s.out.rare++
			}
			return next
		}
	}
	s.at, s.run, s.pc = at, run, pc
	return st
}

// columnText finds the text of a row's number; one that is too long for an exception does not
// belong here.
func (s *Splitter) columnText(o *code.Op) ([]byte, state) {
	rest := s.in[s.at:]
	n, ok := (&scanner{}).find(rest, o.Until, s.final)
	switch {
	case n > maxException:
		return nil, mismatch
	case !ok:
		return nil, starved
	}
	s.at += n
	s.run = 0
	s.pc++
	return rest[:n], next
}
