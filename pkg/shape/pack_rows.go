package shape

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
)

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
	item          item
	kinds, values *column
	latest        []byte // the item of the row before, as it stands in the segment, if it is a text
}

// flatItems gives the items of the rows of the array o, none if they are not of that sort. at has for each place and sub one more than the index of its column, 0 if there is none yet.
func flatItems[column any](p *Program, o *op, at []int32, columns []column, room *[maxFlat]flatItem[column]) []flatItem[column] {
	list := p.Flat(o.a)
	for i, pc := range list {
		at, f := at[int(pc)*int(subs):][:subs], &room[i]
		f.pc, f.item, f.kinds, f.values, f.latest = pc, p.Steps()[pc].item, nil, nil, nil
		values := subNumber
		switch f.item {
		case itemText:
			values = subText
		case itemBoolean:
			values = subKind
		}
		if k := at[subKind]; k > 0 {
			f.kinds = &columns[k-1]
		}
		if v := at[values]; v > 0 {
			f.values = &columns[v-1]
		}
	}
	return room[:len(list)]
}

// rest reads rows as far as they have nothing unusual. The row behind o has not begun.
func (g *gatherer) rest(o *op) {
	w, r := g.walk, &g.seg
	l := &w.loops[len(w.loops)-1]
	if l.left == 0 {
		return
	}
	g.leaves = slices.Grow(g.leaves[:g.used], 2*maxFlat) // so that they stay where they are
	g.leaves = g.leaves[:cap(g.leaves)]
	items := flatItems(g.p, o, g.at, g.leaves, &g.flat)
	if len(items) == 0 {
		return
	}
	seg, at, some, left := r.seg, r.at, uint(r.bit), r.left
	rows, done := l.left, len(items) // done: in the latest row
	booleans := false
row:
	for l.left > 0 {
		l.left--
		for i := range items {
			f := &items[i]
			if f.item == itemBoolean {
				all, had, next := some, left, at
				if left < 2 && at < len(seg) {
					all |= uint(seg[at]) << left
					had, next = left+8, at+1
				}
				if all&3 > 1 || had < 2 || next == len(seg) && left <= r.idle && had == left {
					w.pc, done = f.pc, i
					break row
				}
				some, left, at = all>>2, had-2, next
				booleans = true
				if f.kinds == nil {
					f.kinds = g.leaf(f.pc, subKind)
				}
				f.kinds.addKind(uint16(all & 3))
				continue
			}
			if n := len(f.latest); n > 0 && len(seg)-at >= n && same(seg[at:at+n], f.latest) {
				at += n
				f.values.addAgain()
				continue
			}
			u, n := uint64(0), 0
			if len(seg)-at < 8 {
				u, n = uvarintAt(seg, at)
			} else {
				w := binary.LittleEndian.Uint64(seg[at:])
				if end := bits.TrailingZeros64(^w & (0x80 * ones)); end < 8 || end < 64 && w>>(end-7)&0x7f > 0 {
					u, n = squeeze(w, end), end>>3+1
				}
			}
			kind := uint16(1)
			if u--; f.item == itemDecimal {
				kind += uint16(u & 7)
				u >>= 3
			}
			switch {
			case u >= maxZigzag || n == 0 || kind == 8:
				w.pc, done = f.pc, i
				break row
			case f.item != itemText:
				if f.values == nil {
					f.kinds, f.values = g.leaf(f.pc, subKind), g.leaf(f.pc, subNumber)
				}
				f.kinds.addKind(kind)
				f.values.addNumber(bin.Unzigzag(u))
			case u > uint64(len(seg)-at-n):
				w.pc, done = f.pc, i
				break row
			default:
				if f.values == nil {
					f.values = g.leaf(f.pc, subText)
				}
				f.latest = seg[at : at+n+int(u)]
				f.values.addString(f.latest[n:])
				n += int(u)
			}
			at += n
		}
	}
	g.items += (rows-l.left)*uint64(len(items)) - uint64(len(items)-done)
	r.at, r.bit, r.left = at, byte(some), left
	g.bits = g.bits || booleans
}

// same tells whether two texts of the same length are equal; most are short, and compared at three looks.
func same(a, b []byte) bool {
	n := len(b)
	if n < 8 || n > 24 {
		return string(a) == string(b)
	}
	i, j := min(8, n-8), n-8
	return binary.LittleEndian.Uint64(a) == binary.LittleEndian.Uint64(b) && binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]) && binary.LittleEndian.Uint64(a[j:]) == binary.LittleEndian.Uint64(b[j:])
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
	if len(l.kinds) > 0 {
		l.kinds = append(l.kinds, v)
	} else if v != l.kind || l.n == 0 {
		l.otherKind(v)
	}
	l.n++
}

// otherKind notes the first kind, or the first that is not as those before.
func (l *leaf) otherKind(v uint16) {
	if l.n == 0 {
		l.kind = v
		return
	}
	for range l.n {
		l.kinds = append(l.kinds, l.kind)
	}
	l.kinds = append(l.kinds, v)
}

// addAgain adds the string that was added last.
func (l *leaf) addAgain() {
	if len(l.strs) > 0 {
		l.strs = append(l.strs, l.strs[len(l.strs)-1])
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
