package program

import (
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/items"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// column reads a group of an array of numbers (wire-format section 10.5).
func (j *Joiner) column(o *code.Op) error {
	s, r := &j.at, &j.seg
	h := r.Uvarint()
	n, more := h>>1, h&1 == 1
	s.rows += n
	switch {
	case n > items.MaxColumn:
		return j.fail("group of %d rows, at most %d", n, items.MaxColumn)
	case n == 0 && more:
		return j.fail("group without rows")
	case o.Max != 0 && s.rows > o.Max || !more && s.rows < o.Min:
		return j.fail("%d rows in an array of %d to %d", s.rows, o.Min, o.Max)
	}
	start := s.pc
	if n == 0 {
		j.mark = len(j.dst)
	} else if err := j.group(o, int(n)); err != nil {
		return err
	}
	s.pc = start
	if !more {
		s.pc, s.rows = o.B, 0
	}
	return nil
}

// group reads and writes n rows.
func (j *Joiner) group(o *code.Op, n int) error {
	r := &j.seg
	head := r.Octet()
	w, v, low := uint(head&0x7f), uint(0), uint8(0)
	if o.Type.Scaled() {
		scale := r.Octet()
		low, v = scale&31, uint(scale>>5)
	}
	if w > 64 || v > 5 || low > lexical.MaxScale {
		return j.fail("column of width %d, scale %d and scale width %d", w, low, v)
	}
	rare := items.Reader{}
	rares := uint64(0)
	if head > 0x7f {
		if rares = r.Uvarint(); rares == 0 || rares > uint64(n) {
			return j.fail("%d exceptions in %d rows", rares, n)
		}
		rare = *r
		for range rares {
			r.Uvarint()
			r.Take(r.Uvarint() - 1)
		}
		rare.Seg = r.Seg[:r.At]
	}
	packed := r.Take(uint64(bin.PackedLen(n, int(w+v))))
	if r.Err != nil {
		return r.Err
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
		next = int(rare.Uvarint())
	}
	row := j.at.pc + 1
	for from := 0; from < n; from += columnChunk {
		k := min(n-from, columnChunk)
		bin.TakeAbove(&mantissas, j.mantissas[:k], 0, w)
		bin.TakeAbove(&scales, j.scales[:k], 0, v)
		if o.A >= 0 && (next < 0 || next >= from+k) && most <= lexical.MaxScale && w < 64 {
			j.plainRows(j.p.Row(o.A), k, int(low))
			continue
		}
		for i := range k {
			j.at.pc = row
			j.statics()
			num := lexical.Number{M: bin.Unzigzag(j.mantissas[i]), Scale: low + uint8(j.scales[i])}
			switch {
			case from+i == next:
				j.dst = append(j.dst, rare.Take(rare.Uvarint()-1)...)
				next = -1
				if rares--; rares > 0 {
					next = from + i + 1 + int(rare.Uvarint())
				}
			case num.Scale > lexical.MaxScale || num.M == -1<<63:
				return j.fail("number of scale %d", num.Scale)
			default:
				j.dst = num.Append(j.dst)
			}
			j.mark = len(j.dst)
			j.at.pc++
			j.statics()
		}
	}
	return nil
}

// plainRows writes the first k rows that are unpacked; there is room for them in j.dst.
func (j *Joiner) plainRows(row *code.PlainRow, k, low int) {
	dst := slices.Grow(append(j.dst, row.Before...), k*(len(row.Between)+lexical.NumberRoom)+code.LitRoom)
	at := len(dst)
	dst = dst[:cap(dst)]
	short := len(row.Between) <= code.LitRoom
	for i, z := range j.mantissas[:k] {
		at += lexical.PutNumber(dst[at:], bin.Unzigzag(z), low+int(j.scales[i]&31))
		if short {
			*(*[code.LitRoom]byte)(dst[at:]) = [code.LitRoom]byte(row.Between[:code.LitRoom])
		} else {
			copy(dst[at:], row.Between)
		}
		at += len(row.Between)
	}
	j.dst = dst[:at-len(row.Before)]
	j.mark = len(j.dst) - len(row.Behind)
}

// statics writes texts and prefixes up to the next other operation.
func (j *Joiner) statics() {
	for {
		switch o := &j.p.Ops()[j.at.pc]; o.Code {
		case code.OpText:
			j.dst = append(j.dst, j.p.Lits()[o.A:o.B]...)
		case code.OpAgain:
			j.dst = append(j.dst, j.at.slots[o.A]...)
		default:
			return
		}
		j.at.pc++
	}
}

// boundRows bounds what a group joins to, before any of it is written: its texts, and for each
// number the longest there is of its width and scale. It checks slots and places of exceptions.
func (j *Joiner) boundRows(n int, w uint, scale uint8, rare items.Reader, rares uint64) (bound int, err error) {
	for pc := j.at.pc + 1; j.p.Ops()[pc].Code != code.OpEnd; pc++ {
		switch o := &j.p.Ops()[pc]; o.Code {
		case code.OpText:
			bound += int(o.B - o.A)
		case code.OpAgain:
			if len(j.at.slots[o.A]) == 0 {
				return 0, j.fail("slot %d stands again before it got a prefix", o.A)
			}
			bound += len(j.at.slots[o.A])
		}
	}
	const signAndPoint = 2
	longest := max(lexical.DigitsOf(1<<w-1), int(scale)+1) + signAndPoint
	bound = n * (bound + longest)
	row := uint64(0)
	for range rares {
		row += rare.Uvarint() + 1
		bound += len(rare.Take(rare.Uvarint() - 1))
	}
	if row > uint64(n) {
		return 0, j.fail("exception beyond the rows of its group")
	}
	return bound, rare.Err
}
