package shape

import (
	"encoding/binary"
	"math/bits"

	"github.com/hhfr/hhfr/internal/bin"
)

// column gathers one group of an array of numbers (wire-format section 10.5).
type column struct {
	open    bool // inside an array of numbers
	total   uint64
	numbers []number
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
	c.numbers, c.union, c.low, c.high = c.numbers[:0], 0, maxScale, 0
	c.rare, c.rares, c.lastAt = c.rare[:0], 0, 0
}

func (c *column) add(n number) {
	c.numbers = append(c.numbers, n)
	c.union |= bin.Zigzag(n.m)
	c.low, c.high = min(c.low, n.scale), max(c.high, n.scale)
}

// exception keeps a row's text; its number is 0 with the smallest scale.
func (c *column) exception(text []byte) {
	at := len(c.numbers)
	c.rare = binary.AppendUvarint(c.rare, uint64(at-c.lastAt))
	c.rare = binary.AppendUvarint(c.rare, uint64(len(text))+1)
	c.rare = append(c.rare, text...)
	c.rares++
	c.lastAt = at + 1
	c.numbers = append(c.numbers, number{scale: maxScale + 1})
}

// append writes the group.
func (c *column) append(dst []byte, more, scaled bool) []byte {
	h := uint64(len(c.numbers)) << 1
	if more {
		h |= 1
	}
	dst = binary.AppendUvarint(dst, h)
	if len(c.numbers) == 0 {
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
	for _, n := range c.numbers {
		p.Put(bin.Zigzag(n.m), w)
	}
	if v > 0 {
		for _, n := range c.numbers {
			if n.scale > maxScale {
				n.scale = low
			}
			p.Put(uint64(n.scale-low), v)
		}
	}
	return p.Finish()
}

// size bounds what append writes.
func (c *column) size() int {
	const header, perRow = 16, 64 + 5
	return header + len(c.rare) + bin.PackedLen(len(c.numbers)+1, perRow)
}

// column splits an array of numbers: row after row into a group, and the group into the segment when it is full or the array at its end.
func (s *Splitter) column(o *op) state {
	c := &s.col
	if !c.open {
		c.reset()
		c.open, c.from = true, s.pos()
	}
	for {
		full := c.size()+maxException+4 > s.out.max || len(c.numbers) == maxColumn || s.pos()-c.from > segmentCut/2
		if full && len(c.numbers) > 0 {
			s.group(o, true)
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
	if more && len(s.col.numbers) == 0 {
		return
	}
	s.col.packed = s.col.append(s.col.packed[:0], more, o.typ.scaled())
	s.out.ensure(len(s.col.packed))
	s.out.seg = append(s.out.seg, s.col.packed...)
	if len(s.col.numbers) == 0 {
		s.run = 0
	}
	s.col.clear()
	s.col.from = s.pos()
	if s.pos()-s.cut > segmentCut {
		s.cut = s.pos()
		s.out.flush()
	}
}

// columnRow splits one row; a row that does not fit, or is not whole yet, is not begun.
func (s *Splitter) columnRow(o *op) state {
	at, run, pc := s.at, s.run, s.pc
	var text []byte
	st := next
	for s.pc++; st == next; {
		switch step := &s.p.ops[s.pc]; step.code {
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
