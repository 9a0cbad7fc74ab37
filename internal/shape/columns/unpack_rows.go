package columns

import (
	"encoding/binary"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// rest writes rows as far as they have nothing unusual; steps is how many steps the segment still
// has. The row behind o has not begun.
func (u *Unpacker) rest(o *code.Op, steps uint64) uint64 {
	w := u.walk
	l := &w.loops[len(w.loops)-1]
	if l.left == 0 {
		return steps
	}
	u.leaves = slices.Grow(u.leaves[:u.used], 2*code.MaxFlat) // so that they stay where they are
	u.leaves = u.leaves[:cap(u.leaves)]
	items := flatItems(u.p, o, u.at, u.leaves, &u.flat)
	if len(items) == 0 {
		return steps
	}
	pen, out := u.out.pen()
rows:
	for most := u.start + u.most; l.left > 0 && steps >= uint64(len(items)) && len(out) <= most; {
		l.left--
		for i := range items {
			f := &items[i]
			kind := uint16(0)
			k := f.kinds
			if f.item != code.ItemText {
				if k == nil {
					k = u.begun(f.pc, subKind)
					f.kinds = k
				}
				if k == nil || k.next == k.n {
					w.pc = f.pc
					break rows
				}
				kind = k.kinds[k.index(k.next)]
			}
			if f.item == code.ItemBoolean {
				if kind > 1 {
					w.pc = f.pc
					break rows
				}
				pen, out = pen.pair(out, uint8(kind))
				k.next++
				steps--
				continue
			}
			if f.item != code.ItemText && (kind == 0 || kind > 7) {
				w.pc = f.pc
				break rows
			}
			v := f.values
			if v == nil {
				if f.item == code.ItemText {
					v = u.begun(f.pc, subText)
				} else {
					v = u.begun(f.pc, subNumber)
				}
				f.values = v
			}
			if v == nil || v.next == v.n {
				w.pc = f.pc
				break rows
			}
			if f.item == code.ItemText {
				if f.latest == nil || !v.one {
					from := len(out)
					b := v.strs[v.index(v.next)]
					out = append(bin.AppendUvarint(out, uint64(len(b))+1), b...)
					f.latest = out[from:]
				} else {
					out = append(out, f.latest...)
				}
				v.next++
				steps--
				continue
			}
			z := bin.Zigzag(v.nums[v.next])
			if z >= lexical.MaxZigzag {
				w.pc = f.pc
				break rows
			}
			if f.item == code.ItemDecimal {
				z = z<<3 + uint64(kind-1)
			}
			if z++; z < 1<<56 {
				w, n := bin.Stretch(z)
				out = binary.LittleEndian.AppendUint64(out, w)[:len(out)+n]
			} else {
				out = binary.AppendUvarint(out, z)
			}
			k.next++
			v.next++
			steps--
		}
	}
	u.out.lift(pen, out)
	return steps
}
