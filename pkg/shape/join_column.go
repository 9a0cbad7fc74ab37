package shape

import "github.com/hhfr/hhfr/internal/bin"

// column reads a group of an array of numbers (wire-format section 10.5).
func (j *Joiner) column(o *op) error {
	s, r := &j.at, &j.seg
	h := r.uvarint()
	n, more := h>>1, h&1 == 1
	s.rows += n
	switch {
	case n > maxColumn:
		return j.fail("group of %d rows, at most %d", n, maxColumn)
	case n == 0 && more:
		return j.fail("group without rows")
	case o.max != 0 && s.rows > o.max || !more && s.rows < o.min:
		return j.fail("%d rows in an array of %d to %d", s.rows, o.min, o.max)
	}
	start := s.pc
	if n == 0 {
		j.item()
	} else if err := j.group(o, int(n)); err != nil {
		return err
	}
	s.pc = start
	if !more {
		s.pc, s.rows = o.b, 0
	}
	return nil
}

// group reads and writes n rows.
func (j *Joiner) group(o *op, n int) error {
	r := &j.seg
	head := r.octet()
	w, v, low := uint(head&0x7f), uint(0), uint8(0)
	if o.typ.scaled() {
		scale := r.octet()
		low, v = scale&31, uint(scale>>5)
	}
	if w > 64 || v > 5 || low > maxScale {
		return j.fail("column of width %d, scale %d and scale width %d", w, low, v)
	}
	rare := segmentReader{}
	rares := uint64(0)
	if head > 0x7f {
		if rares = r.uvarint(); rares == 0 || rares > uint64(n) {
			return j.fail("%d exceptions in %d rows", rares, n)
		}
		rare = *r
		for range rares {
			r.uvarint()
			r.take(r.uvarint() - 1)
		}
		rare.seg = r.seg[:r.at]
	}
	packed := r.take(uint64(bin.PackedLen(n, int(w+v))))
	if r.err != nil {
		return r.err
	}
	if j.measure {
		return j.measureRows(n, w, low+1<<v-1, rare, rares)
	}
	mantissas, scales := bin.NewUnpacker(packed), bin.NewUnpacker(packed)
	scales.Skip(uint64(n) * uint64(w))
	next := -1
	if rares > 0 {
		next = int(rare.uvarint())
	}
	row := j.at.pc + 1
	for i := range n {
		j.at.pc = row
		j.statics()
		num := number{m: bin.Unzigzag(mantissas.Take(w)), scale: low + uint8(scales.Take(v))}
		switch {
		case i == next:
			j.put(rare.take(rare.uvarint() - 1))
			next = -1
			if rares--; rares > 0 {
				next = i + 1 + int(rare.uvarint())
			}
		case num.scale > maxScale || num.m == -1<<63:
			return j.fail("number of scale %d", num.scale)
		default:
			j.dst = num.append(j.dst)
		}
		j.item()
		j.at.pc++
		j.statics()
	}
	if rares > 0 {
		return j.fail("exception beyond the rows of its group")
	}
	return nil
}

// statics writes texts and prefixes up to the next other operation.
func (j *Joiner) statics() {
	for {
		switch o := &j.p.ops[j.at.pc]; o.code {
		case opText:
			j.put(j.p.lits[o.a:o.b])
		case opAgain:
			j.put(j.at.slots[o.a])
		default:
			return
		}
		j.at.pc++
	}
}

// measureRows bounds what a group joins to: its texts, and for each number the longest there is of its width and scale.
func (j *Joiner) measureRows(n int, w uint, scale uint8, rare segmentReader, rares uint64) error {
	before := j.size
	for j.at.pc++; j.p.ops[j.at.pc].code != opEnd; j.at.pc++ {
		switch o := &j.p.ops[j.at.pc]; o.code {
		case opText:
			j.size += int(o.b - o.a)
		case opAgain:
			if len(j.at.slots[o.a]) == 0 {
				return j.fail("slot %d stands again before it got a prefix", o.a)
			}
			j.size += len(j.at.slots[o.a])
		}
	}
	const signAndPoint = 2
	longest := max(digitsOf(1<<w-1), int(scale)+1) + signAndPoint
	j.size = before + n*(j.size-before+longest)
	row := uint64(0)
	for range rares {
		row += rare.uvarint() + 1
		j.size += len(rare.take(rare.uvarint() - 1))
	}
	if row > uint64(n) {
		return j.fail("exception beyond the rows of its group")
	}
	return rare.err
}
