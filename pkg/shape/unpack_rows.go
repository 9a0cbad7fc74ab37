package shape

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

// rest writes further rows as far as they have nothing unusual; steps is how many steps the segment still has. The row behind o has not begun.
func (u *Unpacker) rest(o *op, steps uint64) uint64 {
	w := u.walk
	l := &w.loops[len(w.loops)-1]
	var items [maxFlat]flatItem[given]
	n := uint64(flatItems(u.p, o, u.at, u.leaves, &items))
	if n == 0 {
		return steps
	}
	out := u.out
	for l.left > 0 && steps >= n && len(out.out)-u.start <= u.most {
		l.left--
		for i := range items[:n] {
			f := &items[i]
			if !u.flatItem(f, &out) {
				w.pc = f.pc
				u.out = out
				return steps
			}
			steps--
		}
	}
	u.out = out
	return steps
}

// flatItem writes one item; false: it is not as usual.
func (u *Unpacker) flatItem(f *flatItem[given], out *packWriter) bool {
	kind := uint16(0)
	if k := f.kinds; k != nil {
		if k.next == k.n {
			return false
		}
		kind = k.kinds[0]
		if !k.one {
			kind = k.kinds[k.next]
		}
		if f.typ == TypeBoolean {
			if kind > 1 {
				return false
			}
			k.next++
			out.bits(uint64(kind), 2)
			return true
		}
	}
	v := f.values
	if v.next == v.n {
		return false
	}
	if f.kinds == nil {
		b := v.strs[0]
		if !v.one {
			b = v.strs[v.next]
		}
		v.next++
		out.uvarint(uint64(len(b)) + 1)
		out.out = append(out.out, b...)
		return true
	}
	m := v.nums[v.next]
	if kind == 0 || kind > 7 || m >= maxMantissa || m <= -maxMantissa {
		return false
	}
	f.kinds.next++
	v.next++
	z := bin.Zigzag(m)
	if f.typ.scaled() {
		z = z<<3 + uint64(kind-1)
	}
	out.out = binary.AppendUvarint(out.out, z+1)
	return true
}
