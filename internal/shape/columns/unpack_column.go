package columns

import (
	"math/bits"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
)

// column gives the column of the place at hand, inside arrays, at its next value; nil after a
// failure.
func (u *Unpacker) column(s sub) *given {
	g := u.begun(u.walk.pc, s)
	if g == nil {
		return nil
	}
	if g.next == g.n {
		u.r.Fail("column that is too short")
		return nil
	}
	g.next++
	return g
}

// begun gives the column of a place, read when it is needed first; nil after a failure.
func (u *Unpacker) begun(pc int32, s sub) *given {
	at := &u.at[int(pc)*int(subs)+int(s)]
	if *at == 0 {
		if u.used == len(u.leaves) {
			u.leaves = append(u.leaves, given{})
		}
		g := &u.leaves[u.used]
		g.kinds, g.nums, g.strs = g.kinds[:0], g.nums[:0], g.strs[:0]
		g.n, g.next, g.one, g.place = 0, 0, false, pc*int32(subs)+int32(s)
		u.used++
		*at = int32(u.used)
		u.read(&u.p.Ops()[pc], &u.recall.places[u.p.Steps()[pc].Place], s, g)
		u.Bill.charge(pc, u.r.used())
	}
	if u.r.Err != nil {
		return nil
	}
	return &u.leaves[*at-1]
}

func (u *Unpacker) kind(o *code.Op) uint16 {
	if len(u.walk.loops) > 0 {
		if g := u.column(subKind); g != nil {
			return g.kinds[g.index(g.next-1)]
		}
		return 0
	}
	pl, n := u.place(), o.KindBits()
	if n == 1 || !u.r.flag() {
		pl.kind = uint16(u.r.wide(n))
	}
	return pl.kind
}

func (u *Unpacker) number(o *code.Op, s sub) int64 {
	if len(u.walk.loops) > 0 {
		if g := u.column(s); g != nil {
			return g.nums[g.index(g.next-1)]
		}
		return 0
	}
	pl := u.place()
	if s == subMinutes {
		if !u.r.flag() {
			pl.minutes = u.minutes()
		}
		return int64(pl.minutes)
	}
	isTime := o.Type == shape.TypeDateTime
	v := pl.predict(&u.time, isTime)
	if !u.r.flag() {
		v += u.r.zigzag()
	}
	pl.note(v, &u.time, isTime)
	return v
}

func (u *Unpacker) string(o *code.Op, s sub) []byte {
	if len(u.walk.loops) > 0 {
		if g := u.column(s); g != nil {
			return g.strs[g.index(g.next-1)]
		}
		return nil
	}
	pl := u.place()
	if u.r.flag() {
		return pl.octets
	}
	b := u.readString(o, s, pl.octets)
	u.memory.keep(pl, b)
	return b
}

func (u *Unpacker) readString(o *code.Op, s sub, before []byte) []byte {
	if s == subText {
		return u.readText(before)
	}
	return u.readOctets(o, before)
}

func (u *Unpacker) readOctets(o *code.Op, before []byte) []byte {
	n := uint64(16)
	if !o.IsUUID() {
		if n = uint64(len(before)); !u.r.flag() {
			n = u.r.Uvarint()
		}
	}
	return u.r.Take(n)
}

// read reads a column.
func (u *Unpacker) read(o *code.Op, pl *place, s sub, g *given) {
	if !u.r.flag() {
		u.rows = u.r.count(u.room)
	}
	g.n = u.rows
	if u.room -= g.n; g.n == 0 || u.room < 0 {
		u.r.Fail("column of that length")
		return
	}
	switch s {
	case subKind:
		u.readKinds(o, pl, g)
	case subNumber:
		u.readNumbers(o, pl, g)
	case subMinutes:
		for range g.n {
			if !u.r.flag() {
				pl.minutes = u.minutes()
			}
			g.nums = append(g.nums, int64(pl.minutes))
		}
	case subText, subOctets:
		u.readStrings(o, s, pl, g)
	}
}

func (u *Unpacker) readKinds(o *code.Op, pl *place, g *given) {
	r, n := &u.r, o.KindBits()
	switch r.wide(2) {
	case columnSame:
		g.one = true
	case columnOne:
		pl.kind = uint16(r.wide(n))
		g.one = true
	case columnPacked:
		low, width := uint16(r.wide(n)), uint(r.wide(4))
		if g.kinds = takeAbove(u, g.kinds, g.n, low, width); r.Err != nil {
			return
		}
		high := uint16(0)
		for _, k := range g.kinds {
			high |= k
		}
		if pl.kind = g.kinds[g.n-1]; high>>n > 0 {
			r.Fail("value too large for its place")
		}
		return
	default:
		r.Fail("method of a column")
	}
	g.kinds = append(g.kinds, pl.kind)
}

func (u *Unpacker) readNumbers(o *code.Op, pl *place, g *given) {
	r, n := &u.r, g.n
	isTime := o.Type == shape.TypeDateTime
	want := pl.predict(&u.time, isTime)
	switch r.wide(3) {
	case numbersSteady:
		for range n {
			g.nums = append(g.nums, want)
			want += pl.stride
		}
	case numbersRange:
		pl.base += r.zigzag()
		pl.width = uint8(r.wide(7))
		fallthrough
	case numbersSlot:
		g.nums = takeAbove(u, g.nums, n, pl.base, uint(pl.width))
	case numbersSteps:
		v, step := want+r.zigzag(), r.zigzag()
		width := uint(r.wide(7))
		g.nums = append(g.nums, v)
		for _, d := range u.packed(n-1, width) {
			v += step + int64(d)
			g.nums = append(g.nums, v)
		}
	case numbersFew:
		var few [maxFew]int64
		d := int(r.wide(4)) + 1
		for i := range d {
			want += r.zigzag()
			few[i] = want
		}
		width := uint(bits.Len(uint(d - 1)))
		for _, i := range u.packed(n, width) {
			g.nums = append(g.nums, few[i])
		}
	case numbersBeside:
		low := r.zigzag()
		width := uint(r.wide(7))
		if len(u.beside) != n {
			r.Fail("no column of the same length before")
			return
		}
		for i, v := range u.packed(n, width) {
			g.nums = append(g.nums, u.beside[i]+low+int64(v))
		}
	case numbersAligned:
		if u.readAligned(pl, g); r.Err != nil {
			return
		}
	default:
		r.Fail("method of a column")
		return
	}
	if r.Err != nil {
		return
	}
	u.beside = g.nums
	pl.noteColumn(g.nums, &u.time, isTime)
}

func (u *Unpacker) readStrings(o *code.Op, s sub, pl *place, g *given) {
	r, before := &u.r, pl.octets
	switch r.wide(2) {
	case columnSame:
		g.one = true
		g.strs = append(g.strs, before)
		return
	case columnOne:
		g.one = true
		g.strs = append(g.strs, u.readString(o, s, before))
	case columnPacked:
		d := r.count(g.n)
		if d == 0 {
			r.Fail("dictionary without entries")
			return
		}
		for range d {
			before = u.readString(o, s, before)
			g.strs = append(g.strs, before)
		}
		width := uint(bits.Len(uint(d - 1)))
		for _, i := range u.packed(g.n, width) {
			if i >= uint64(d) {
				r.Fail("index beyond its dictionary")
				return
			}
			g.strs = append(g.strs, g.strs[i])
		}
		g.strs = append(g.strs[:0], g.strs[d:]...)
	case columnList:
		for i := 0; i < g.n && r.Err == nil; i++ {
			before = u.readString(o, s, before)
			g.strs = append(g.strs, before)
		}
	}
	if r.Err == nil {
		u.memory.keep(pl, g.strs[len(g.strs)-1])
	}
}

// readAligned reads numbers that are at the largest scale of their column.
func (u *Unpacker) readAligned(pl *place, g *given) {
	r := &u.r
	low := pl.base + r.zigzag()
	width := uint(r.wide(7))
	packed := u.packed(g.n, width)
	at := u.at[int(u.walk.pc)*int(subs)+int(subKind)]
	if r.Err != nil || at == 0 {
		r.Fail("aligned numbers without scales")
		return
	}
	a, ok := alignmentOf(u.leaves[at-1].kinds)
	for _, d := range packed {
		v, f := low+int64(d), a.factor()
		if !ok || f == 0 || v%f != 0 {
			r.Fail("number that is not aligned")
			return
		}
		g.nums = append(g.nums, v/f)
	}
}
