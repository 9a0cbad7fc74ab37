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
	if n == 0 {
		j.mark = len(j.dst)
		j.endGroup(o, more)
		return nil
	}
	j.group = columnGroup{n: int(n), more: more, next: -1}
	if err := j.beginGroup(o); err != nil {
		return err
	}
	return j.groupRows(o)
}

// endGroup goes on behind a group.
func (j *Joiner) endGroup(o *code.Op, more bool) {
	if !more {
		j.at.pc, j.at.rows = o.B, 0
	}
}

// beginGroup reads what a group has before its rows.
func (j *Joiner) beginGroup(o *code.Op) error {
	r, g := &j.seg, &j.group
	head := r.Octet()
	g.w = uint(head & 0x7f)
	if o.Type.Scaled() {
		scale := r.Octet()
		g.low, g.v = scale&31, uint(scale>>5)
	}
	if g.w > 64 || g.v > 5 || g.low > lexical.MaxScale {
		return j.fail("column of width %d, scale %d and scale width %d", g.w, g.low, g.v)
	}
	g.high = g.low + 1<<g.v - 1
	if head > 0x7f {
		if g.rares = r.Uvarint(); g.rares == 0 || g.rares > uint64(g.n) {
			return j.fail("%d exceptions in %d rows", g.rares, g.n)
		}
		g.rare = *r
		for range g.rares {
			r.Uvarint()
			r.Take(r.Uvarint() - 1)
		}
		g.rare.Seg = r.Seg[:r.At]
	}
	packed := r.Take(uint64(bin.PackedLen(g.n, int(g.w+g.v))))
	if r.Err != nil {
		return r.Err
	}
	bound, err := j.boundRows(g.n, g.w, g.high, g.rare, g.rares)
	if err == nil {
		err = j.over(bound)
	}
	if err != nil {
		return err
	}
	g.atATime = max(1, min(columnChunk, j.most/max(1, bound/g.n)))
	j.dst = slices.Grow(j.dst, min(bound, j.most))
	g.mantissas, g.scales = bin.NewUnpacker(packed), bin.NewUnpacker(packed)
	g.scales.Skip(uint64(g.n) * uint64(g.w))
	if g.rares > 0 {
		g.next = int(g.rare.Uvarint())
	}
	return nil
}

// groupRows writes rows of the group until it has no more, or enough is joined.
func (j *Joiner) groupRows(o *code.Op) error {
	g, start := &j.group, j.at.pc
	for g.from < g.n {
		if len(j.dst) > j.stop {
			j.more = true
			return nil
		}
		k := min(g.n-g.from, g.atATime)
		bin.TakeAbove(&g.mantissas, j.mantissas[:k], 0, g.w)
		bin.TakeAbove(&g.scales, j.scales[:k], 0, g.v)
		if o.A >= 0 && (g.next < 0 || g.next >= g.from+k) && g.high <= lexical.MaxScale && g.w < 64 {
			j.plainRows(j.p.Row(o.A), k, int(g.low))
		} else if err := j.unevenRows(k); err != nil {
			return err
		}
		j.at.pc = start
		g.from += k
	}
	j.endGroup(o, g.more)
	return nil
}

// unevenRows writes the next k rows, which are unpacked, whatever they are.
func (j *Joiner) unevenRows(k int) error {
	g, row := &j.group, j.at.pc+1
	for i := range k {
		j.at.pc = row
		j.statics()
		num := lexical.Number{M: bin.Unzigzag(j.mantissas[i]), Scale: g.low + uint8(j.scales[i])}
		switch {
		case g.from+i == g.next:
			j.dst = append(j.dst, g.rare.Take(g.rare.Uvarint()-1)...)
			g.next = -1
			if g.rares--; g.rares > 0 {
				g.next = g.from + i + 1 + int(g.rare.Uvarint())
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
