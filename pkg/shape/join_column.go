package shape

import (
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
)

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
		j.mark = len(j.dst)
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
	most := low + 1<<v - 1
	bound, err := j.boundRows(n, w, most, rare, rares)
	if err == nil {
		err = j.over(bound)
	}
	if err != nil {
		return err
	}
	j.dst = slices.Grow(j.dst, bound)
	mantissas, scales := bin.NewUnpacker(packed), bin.NewUnpacker(packed)
	scales.Skip(uint64(n) * uint64(w))
	next := -1
	if rares > 0 {
		next = int(rare.uvarint())
	}
	row := j.at.pc + 1
	for from := 0; from < n; from += columnChunk {
		k := min(n-from, columnChunk)
		mantissas.TakeAll(j.mantissas[:k], w)
		scales.TakeAll(j.scales[:k], v)
		if o.a >= 0 && (next < 0 || next >= from+k) && most <= maxScale && w < 64 {
			j.plainRows(j.p.Row(o.a), k, int(low))
			continue
		}
		for i := range k {
			j.at.pc = row
			j.statics()
			num := number{m: bin.Unzigzag(j.mantissas[i]), scale: low + uint8(j.scales[i])}
			switch {
			case from+i == next:
				j.dst = append(j.dst, rare.take(rare.uvarint()-1)...)
				next = -1
				if rares--; rares > 0 {
					next = from + i + 1 + int(rare.uvarint())
				}
			case num.scale > maxScale || num.m == -1<<63:
				return j.fail("number of scale %d", num.scale)
			default:
				j.dst = num.append(j.dst)
			}
			j.mark = len(j.dst)
			j.at.pc++
			j.statics()
		}
	}
	return nil
}

// columnChunk is how many rows of a column are unpacked at a time.
const columnChunk = 256

// plainRows writes the first k rows that are unpacked; there is room for them in j.dst.
func (j *Joiner) plainRows(row *plainRow, k, low int) {
	dst := slices.Grow(append(j.dst, row.before...), k*(len(row.between)+numberRoom)+litRoom)
	at := len(dst)
	dst = dst[:cap(dst)]
	short := len(row.between) <= litRoom
	for i, z := range j.mantissas[:k] {
		at += putNumber(dst[at:], bin.Unzigzag(z), low+int(j.scales[i]&31))
		if short {
			*(*[litRoom]byte)(dst[at:]) = [litRoom]byte(row.between[:litRoom])
		} else {
			copy(dst[at:], row.between)
		}
		at += len(row.between)
	}
	j.dst = dst[:at-len(row.before)]
	j.mark = len(j.dst) - len(row.behind)
}

// statics writes texts and prefixes up to the next other operation.
func (j *Joiner) statics() {
	for {
		switch o := &j.p.Ops()[j.at.pc]; o.code {
		case opText:
			j.dst = append(j.dst, j.p.Lits()[o.a:o.b]...)
		case opAgain:
			j.dst = append(j.dst, j.at.slots[o.a]...)
		default:
			return
		}
		j.at.pc++
	}
}

// boundRows bounds what a group joins to, before any of it is written: its texts, and for each number the longest there is of its width and scale. It checks slots and places of exceptions.
func (j *Joiner) boundRows(n int, w uint, scale uint8, rare segmentReader, rares uint64) (bound int, err error) {
	for pc := j.at.pc + 1; j.p.Ops()[pc].code != opEnd; pc++ {
		switch o := &j.p.Ops()[pc]; o.code {
		case opText:
			bound += int(o.b - o.a)
		case opAgain:
			if len(j.at.slots[o.a]) == 0 {
				return 0, j.fail("slot %d stands again before it got a prefix", o.a)
			}
			bound += len(j.at.slots[o.a])
		}
	}
	const signAndPoint = 2
	longest := max(digitsOf(1<<w-1), int(scale)+1) + signAndPoint
	bound = n * (bound + longest)
	row := uint64(0)
	for range rares {
		row += rare.uvarint() + 1
		bound += len(rare.take(rare.uvarint() - 1))
	}
	if row > uint64(n) {
		return 0, j.fail("exception beyond the rows of its group")
	}
	return bound, rare.err
}
