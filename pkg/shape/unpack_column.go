package shape

import (
	"math/bits"

	"github.com/hhfr/hhfr/internal/bin"
)

// column gives the column of the place at hand, inside arrays, read when it is needed first; nil after a failure.
func (u *Unpacker) column(o *op, s sub) *given {
	at := &u.at[int(u.walk.pc)*int(subs)+int(s)]
	if *at == 0 {
		if u.used == len(u.leaves) {
			u.leaves = append(u.leaves, given{})
		}
		g := &u.leaves[u.used]
		g.kinds, g.nums, g.strs = g.kinds[:0], g.nums[:0], g.strs[:0]
		g.next, g.one, g.place = 0, false, u.walk.pc*int32(subs)+int32(s)
		u.used++
		*at = int32(u.used)
		u.read(o, s, g)
	}
	g := &u.leaves[*at-1]
	if g.next == g.n {
		u.r.fail("column that is too short")
	}
	if u.r.err != nil {
		return nil
	}
	g.next++
	return g
}

func (g *given) index() int {
	if g.one {
		return 0
	}
	return g.next - 1
}

func (u *Unpacker) kind(o *op) uint16 {
	if len(u.walk.loops) > 0 {
		if g := u.column(o, subKind); g != nil {
			return g.kinds[g.index()]
		}
		return 0
	}
	pl, n := u.place(), o.kindBits()
	if n == 1 || !u.r.flag() {
		pl.kind = uint16(u.r.wide(n))
	}
	return pl.kind
}

// place is what is remembered of the place at hand.
func (u *Unpacker) place() *place { return &u.recall.places[u.p.pack.place[u.walk.pc]] }

// minutes reads the offset of a time.
func (u *Unpacker) minutes() int32 {
	v := u.r.zigzag()
	if v != int64(int32(v)) {
		u.r.fail("offset of a time")
	}
	return int32(v)
}

func (u *Unpacker) number(o *op, s sub) int64 {
	if len(u.walk.loops) > 0 {
		if g := u.column(o, s); g != nil {
			return g.nums[g.index()]
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
	isTime := o.typ == TypeDateTime
	v := pl.predict(&u.time, isTime)
	if !u.r.flag() {
		v += u.r.zigzag()
	}
	pl.note(v, &u.time, isTime)
	return v
}

func (u *Unpacker) string(o *op, s sub) []byte {
	if len(u.walk.loops) > 0 {
		if g := u.column(o, s); g != nil {
			return g.strs[g.index()]
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

func (u *Unpacker) readString(o *op, s sub, before []byte) []byte {
	if s == subText {
		return u.readText(before)
	}
	return u.readOctets(o, before)
}

func (u *Unpacker) readOctets(o *op, before []byte) []byte {
	n := uint64(16)
	if !o.isUUID() {
		if n = uint64(len(before)); !u.r.flag() {
			n = u.r.uvarint()
		}
	}
	return u.r.take(n)
}

// read reads a column.
func (u *Unpacker) read(o *op, s sub, g *given) {
	if !u.r.flag() {
		u.rows = u.r.count(u.room)
	}
	g.n = u.rows
	if u.room -= g.n; g.n == 0 || u.room < 0 {
		u.r.fail("column of that length")
		return
	}
	pl := u.place()
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

func (u *Unpacker) readKinds(o *op, pl *place, g *given) {
	r, n := &u.r, o.kindBits()
	switch r.wide(2) {
	case columnSame:
		g.one = true
	case columnOne:
		pl.kind = uint16(r.wide(n))
		g.one = true
	case columnPacked:
		low, width := uint16(r.wide(n)), uint(r.wide(4))
		packed := u.packed(g.n, width)
		for range g.n {
			g.kinds = append(g.kinds, low+uint16(packed.Take(width)))
		}
		pl.kind = g.kinds[g.n-1]
		for _, k := range g.kinds {
			if k>>n > 0 {
				r.fail("value too large for its place")
			}
		}
		return
	default:
		r.fail("method of a column")
	}
	g.kinds = append(g.kinds, pl.kind)
}

// packed takes the octets of n values of a width.
func (u *Unpacker) packed(n int, width uint) bin.Unpacker {
	if width > 64 {
		u.r.fail("width over 64")
	}
	return bin.NewUnpacker(u.r.take(uint64(bin.PackedLen(n, int(width)))))
}

func (u *Unpacker) readNumbers(o *op, pl *place, g *given) {
	r, n := &u.r, g.n
	isTime := o.typ == TypeDateTime
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
		packed := u.packed(n, uint(pl.width))
		for range n {
			g.nums = append(g.nums, pl.base+int64(packed.Take(uint(pl.width))))
		}
	case numbersSteps:
		v, step := want+r.zigzag(), r.zigzag()
		width := uint(r.wide(7))
		packed := u.packed(n-1, width)
		g.nums = append(g.nums, v)
		for range n - 1 {
			v += step + int64(packed.Take(width))
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
		packed := u.packed(n, width)
		for range n {
			g.nums = append(g.nums, few[packed.Take(width)])
		}
	case numbersBeside:
		low := r.zigzag()
		width := uint(r.wide(7))
		packed := u.packed(n, width)
		if len(u.beside) != n {
			r.fail("no column of the same length before")
			return
		}
		for i := range n {
			g.nums = append(g.nums, u.beside[i]+low+int64(packed.Take(width)))
		}
	case numbersAligned:
		if u.readAligned(pl, g); r.err != nil {
			return
		}
	default:
		r.fail("method of a column")
		return
	}
	u.beside = append(u.beside[:0], g.nums...)
	pl.noteColumn(g.nums, &u.time, isTime)
}

func (u *Unpacker) readStrings(o *op, s sub, pl *place, g *given) {
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
			r.fail("dictionary without entries")
			return
		}
		for range d {
			before = u.readString(o, s, before)
			g.strs = append(g.strs, before)
		}
		width := uint(bits.Len(uint(d - 1)))
		packed := u.packed(g.n, width)
		for range g.n {
			i := packed.Take(width)
			if i >= uint64(d) {
				r.fail("index beyond its dictionary")
				return
			}
			g.strs = append(g.strs, g.strs[i])
		}
		g.strs = append(g.strs[:0], g.strs[d:]...)
	case columnList:
		for i := 0; i < g.n && r.err == nil; i++ {
			before = u.readString(o, s, before)
			g.strs = append(g.strs, before)
		}
	}
	if r.err == nil {
		u.memory.keep(pl, g.strs[len(g.strs)-1])
	}
}
