package columns

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// rest reads rows as far as they have nothing unusual. The row behind o has not begun.
func (g *gatherer) rest(o *code.Op) {
	w, r := g.walk, &g.seg
	l := &w.loops[len(w.loops)-1]
	if l.left == 0 {
		return
	}
	g.leaves = slices.Grow(g.leaves[:g.used], 2*code.MaxFlat) // so that they stay where they are
	g.leaves = g.leaves[:cap(g.leaves)]
	items := flatItems(g.p, o, g.at, g.leaves, &g.flat)
	if len(items) == 0 {
		return
	}
	seg, at, some, left := r.Seg, r.At, uint(r.Bit), r.Left
	rows, done := l.left, len(items) // done: in the latest row
	booleans := false
row:
	for l.left > 0 {
		l.left--
		for i := range items {
			f := &items[i]
			if f.item == code.ItemBoolean {
				all, had, next := some, left, at
				if left < 2 && at < len(seg) {
					all |= uint(seg[at]) << left
					had, next = left+8, at+1
				}
				if all&3 > 1 || had < 2 || next == len(seg) && left <= r.Idle && had == left {
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
				u, n = bin.UvarintAt(seg, at)
			} else {
				w := binary.LittleEndian.Uint64(seg[at:])
				if end := bits.TrailingZeros64(^w & (0x80 * bin.Ones)); end < 8 || end < 64 && w>>(end-7)&0x7f > 0 {
					u, n = bin.Squeeze(w, end), end>>3+1
				}
			}
			kind := uint16(1)
			if u--; f.item == code.ItemDecimal {
				kind += uint16(u & 7)
				u >>= 3
			}
			switch {
			case u >= lexical.MaxZigzag || n == 0 || kind == 8:
				w.pc, done = f.pc, i
				break row
			case f.item != code.ItemText:
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
	r.At, r.Bit, r.Left = at, byte(some), left
	g.bits = g.bits || booleans
}
