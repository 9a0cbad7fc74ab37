package shape

import "encoding/binary"

// maxFlat is how many items a row may have that is taken as a whole.
const maxFlat = 16

// flatRows gives the places in the rows of the array at ops[i], if they are nothing but texts, numbers and booleans.
func flatRows(ops []op, i int) (items []int32) {
	for i++; ; i++ {
		switch o := &ops[i]; o.code {
		case opText, opAgain:
		case opNext:
			return items
		case opValue:
			if len(items) == maxFlat || o.typ == TypeUUID || o.typ == TypeDateTime || o.typ.pieces() {
				return nil
			}
			items = append(items, int32(i))
		default:
			return nil
		}
	}
}

// flatItem is a place in such a row, with its columns: those that are gathered, or that were read.
type flatItem[column any] struct {
	pc            int32
	typ           Type
	kinds, values *column
}

// flatItems gives the items of the rows of the array o, if their columns are all there: 0 if not. at has for each place and sub one more than the index of its column.
func flatItems[column any](p *Program, o *op, at []int32, columns []column, items *[maxFlat]flatItem[column]) int {
	list := p.pack.flat[o.a]
	for i, pc := range list {
		at := at[int(pc)*int(subs):][:subs]
		f := flatItem[column]{pc: pc, typ: p.ops[pc].typ}
		kinds, values := int32(0), at[subText]
		switch {
		case f.typ == TypeBoolean:
			kinds, values = at[subKind], at[subKind]
		case f.typ.numeric():
			if kinds, values = at[subKind], at[subNumber]; kinds == 0 {
				return 0
			}
		}
		if values == 0 {
			return 0
		}
		if kinds > 0 {
			f.kinds = &columns[kinds-1]
		}
		f.values = &columns[values-1]
		items[i] = f
	}
	return len(list)
}

// rest reads further rows as far as they have nothing unusual. The row behind o has not begun.
func (g *gatherer) rest(o *op) {
	w, r := g.walk, &g.seg
	l := &w.loops[len(w.loops)-1]
	var items [maxFlat]flatItem[leaf]
	n := flatItems(g.p, o, g.at, g.leaves, &items)
	if n == 0 {
		return
	}
	for l.left > 0 {
		l.left--
		for i := range items[:n] {
			f := &items[i]
			if f.typ == TypeBoolean {
				if !r.has(true) {
					w.pc = f.pc
					return
				}
				b := r.bits(2)
				f.kinds.addKind(uint16(b))
				g.items++
				if g.bits = true; b > 1 {
					if w.pc, w.text = f.pc, true; b > 2 {
						r.fail("boolean that is none")
					}
					return
				}
				continue
			}
			u, size := uint64(0), 0
			if r.at < len(r.seg) {
				if u, size = uint64(r.seg[r.at]), 1; u > 0x7f {
					u, size = binary.Uvarint(r.seg[r.at:])
				}
			}
			if u == 0 || size <= 0 || size > 1 && r.seg[r.at+size-1] == 0 || !g.flatValue(f, u, size) {
				w.pc = f.pc
				return
			}
			g.items++
		}
	}
}

// flatValue takes a number or text of which u, of size octets, is the beginning; false: it is not as usual.
func (g *gatherer) flatValue(f *flatItem[leaf], u uint64, size int) bool {
	r := &g.seg
	if f.kinds == nil {
		if u--; u > uint64(len(r.seg)-r.at-size) {
			return false
		}
		r.at += size + int(u)
		f.values.addString(r.seg[r.at-int(u) : r.at])
		return true
	}
	kind := uint16(1)
	if u--; f.typ.scaled() {
		if u&7 == 7 {
			return false
		}
		kind += uint16(u & 7)
		u >>= 3
	}
	if u >= maxZigzag {
		return false
	}
	r.at += size
	f.kinds.addKind(kind)
	f.values.addNumber(int64(u>>1) ^ -int64(u&1))
	return true
}

// leaf is a column: the fields of one place inside arrays.
type leaf struct {
	n     int
	kind  uint16   // the first; all, if kinds is empty
	kinds []uint16 // all
	nums  []int64
	str   []byte   // the first; all, if strs is empty
	strs  [][]byte // all
}

func (l *leaf) reset() { l.n, l.kinds, l.nums, l.strs = 0, l.kinds[:0], l.nums[:0], l.strs[:0] }

func (l *leaf) addKind(v uint16) {
	switch {
	case l.n == 0:
		l.kind = v
	case len(l.kinds) > 0:
		l.kinds = append(l.kinds, v)
	case v != l.kind:
		for range l.n {
			l.kinds = append(l.kinds, l.kind)
		}
		l.kinds = append(l.kinds, v)
	}
	l.n++
}

func (l *leaf) addNumber(v int64) {
	l.nums = append(l.nums, v)
	l.n++
}

func (l *leaf) addString(b []byte) {
	switch {
	case l.n == 0:
		l.str = b
	case len(l.strs) > 0:
		l.strs = append(l.strs, b)
	case string(b) != string(l.str):
		for range l.n {
			l.strs = append(l.strs, l.str)
		}
		l.strs = append(l.strs, b)
	}
	l.n++
}
