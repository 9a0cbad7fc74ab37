package shape

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
)

// column gathers one group of an array of numbers (wire-format section 10.5).
type column struct {
	open    bool // inside an array of numbers
	total   uint64
	zigzags []uint64 // the mantissas
	scales  []uint8
	union   uint64 // of all zigzag mantissas
	low     uint8  // smallest and largest scale
	high    uint8
	rare    []byte // exceptions as they travel
	rares   uint64
	lastAt  int   // row of the last exception
	from    int64 // where in the message the group began
	packed  []byte
}

func (c *column) reset() { c.open, c.total = false, 0; c.clear() }

func (c *column) clear() {
	c.zigzags, c.scales, c.union, c.low, c.high = c.zigzags[:0], c.scales[:0], 0, maxScale, 0
	c.rare, c.rares, c.lastAt = c.rare[:0], 0, 0
}

func (c *column) add(n number) {
	z := bin.Zigzag(n.m)
	c.zigzags, c.scales = append(c.zigzags, z), append(c.scales, n.scale)
	c.union |= z
	c.low, c.high = min(c.low, n.scale), max(c.high, n.scale)
}

// exception keeps a row's text; its number is 0 with the smallest scale.
func (c *column) exception(text []byte) {
	at := len(c.zigzags)
	c.rare = binary.AppendUvarint(c.rare, uint64(at-c.lastAt))
	c.rare = binary.AppendUvarint(c.rare, uint64(len(text))+1)
	c.rare = append(c.rare, text...)
	c.rares++
	c.lastAt = at + 1
	c.zigzags, c.scales = append(c.zigzags, 0), append(c.scales, maxScale+1)
}

// append writes the group.
func (c *column) append(dst []byte, more, scaled bool) []byte {
	h := uint64(len(c.zigzags)) << 1
	if more {
		h |= 1
	}
	dst = binary.AppendUvarint(dst, h)
	if len(c.zigzags) == 0 {
		return dst
	}
	w := uint(bits.Len64(c.union))
	low, v := c.low, uint(0)
	if c.high < c.low {
		low = 0
	} else {
		v = uint(bits.Len8(c.high - c.low))
	}
	width := byte(w)
	if c.rares > 0 {
		width |= 0x80
	}
	dst = append(dst, width)
	if scaled {
		dst = append(dst, low|byte(v)<<5)
	}
	if c.rares > 0 {
		dst = append(binary.AppendUvarint(dst, c.rares), c.rare...)
	}
	p := bin.NewPacker(dst)
	p.PutAll(c.zigzags, w)
	if v > 0 {
		for i, scale := range c.scales { // the mantissas are not needed any more
			c.zigzags[i] = 0
			if scale <= maxScale {
				c.zigzags[i] = uint64(scale - low)
			}
		}
		p.PutAll(c.zigzags, v)
	}
	return p.Finish()
}

// room is how many rows the group can have so that it fits n octets, a further row may be an exception, and nothing is over maxColumn.
func (c *column) room(n int) int {
	const header, perRow = 16, 64 + 5
	n -= header + len(c.rare) + maxException + 4
	return max(0, min(n*8/perRow, maxColumn))
}

// column splits an array of numbers: row after row into a group, and the group into the segment when it is full or the array at its end.
func (s *Splitter) column(o *op) state {
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
		if o.a >= 0 && s.plainRows(o, s.p.Row(o.a)) {
			continue
		}
		st := mismatch
		if o.max == 0 || c.total < o.max {
			st = s.columnRow(o)
		}
		switch {
		case st == starved || s.out.err != nil:
			return starved
		case st == next:
			continue
		case c.total < o.min:
			s.group(o, true)
			return mismatch
		}
		s.group(o, false)
		c.open = false
		s.pc = int(o.b)
		return next
	}
}

// group hands the group over to the segment.
func (s *Splitter) group(o *op, more bool) {
	if more && len(s.col.zigzags) == 0 {
		return
	}
	s.col.packed = s.col.append(s.col.packed[:0], more, o.typ.scaled())
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

// plainRows splits rows of a text, a number in its usual form, and a text that ends it, as many as come and have room in the group; it tells whether any did.
func (s *Splitter) plainRows(o *op, row *plainRow) bool {
	c := &s.col
	before, behind, between := row.before, row.behind, row.between
	rows := len(c.zigzags)
	most := c.room(s.out.max)
	if o.max > 0 {
		most = int(min(uint64(most), uint64(rows)+o.max-c.total))
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
	from, scaled := rows, o.typ.scaled()
	at := s.at + len(before) // where a number begins
	for rows < most && at+scanRoom+len(between) <= len(in) {
		z, scale, n := scanNumber(in[at:], scaled)
		next := at + n + len(between)
		more := n > 0 && string(in[at+n:next]) == string(between)
		if !more && (n == 0 || !bytes.HasPrefix(in[at+n:], behind)) {
			break
		}
		zigzags[rows], scales[rows] = z, scale
		rows++
		union |= z
		low, high = min(low, scale), max(high, scale)
		if s.at = at + n + len(behind); !more {
			break
		}
		at = next
	}
	c.zigzags, c.scales, c.union, c.low, c.high = zigzags[:rows], scales[:rows], union, low, high
	if rows == from {
		return false
	}
	c.total += uint64(rows - from)
	s.run = int64(len(behind))
	return true
}

// columnRow splits one row; a row that does not fit, or is not whole yet, is not begun.
func (s *Splitter) columnRow(o *op) state {
	at, run, pc := s.at, s.run, s.pc
	var text []byte
	st := next
	for s.pc++; st == next; {
		switch step := &s.p.Ops()[s.pc]; step.code {
		case opText:
			st = s.matchText(step)
		case opAgain:
			st = s.matchAgain(step)
		case opNumber:
			text, st = s.columnText(step)
		default:
			s.pc = pc
			s.col.total++
			if n, ok := parseNumber(text, o.typ.scaled()); ok {
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

// columnText finds the text of a row's number; one that is too long for an exception does not belong here.
func (s *Splitter) columnText(o *op) ([]byte, state) {
	rest := s.in[s.at:]
	n, ok := (&scanner{}).find(rest, o.until, s.final)
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
