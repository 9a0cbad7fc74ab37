package shape

import (
	"math/bits"

	"github.com/hhfr/hhfr/internal/bin"
)

// maxAligned bounds a number at the largest scale of its column.
const maxAligned = 1 << 62

// alignment brings the decimals of a column to the largest scale among them: 2.5 beside 1.25 is 2.50. Values that are no numbers are left out.
type alignment struct {
	kinds []uint16
	most  uint16 // the kind of the largest scale
	all   span   // of the numbers, aligned
}

// alignmentOf tells how the numbers behind some kinds are aligned; false: all have the same scale already, or some are no plain decimals.
func alignmentOf(kinds []uint16) (a alignment, ok bool) {
	least := uint16(1 + maxScale)
	for _, k := range kinds {
		if k > 1+maxScale {
			return a, false
		}
		if k > 0 {
			least, a.most = min(least, k), max(a.most, k)
		}
	}
	a.kinds = kinds
	return a, least < a.most
}

// factor is by what the next number is multiplied; 0: there is no further one.
func (a *alignment) factor() int64 {
	for i, k := range a.kinds {
		if k > 0 {
			a.kinds = a.kinds[i+1:]
			return int64(powers[a.most-k])
		}
	}
	return 0
}

// alignment tells how the column of the numbers at a place is aligned, and its range then; false: it cannot be.
func (e *packer) alignment(pc int32, nums []int64) (a alignment, ok bool) {
	for i := range e.gather.events {
		if ev := &e.gather.events[i]; ev.pc == pc && ev.sub == subKind && ev.leaf >= 0 {
			a, ok = alignmentOf(e.gather.leaves[ev.leaf].kinds)
			break
		}
	}
	if !ok {
		return a, false
	}
	rest := a
	for i, v := range nums {
		f := rest.factor()
		if high, low := bits.Mul64(uint64(max(v, -v)), uint64(f)); f == 0 || high > 0 || low >= maxAligned {
			return a, false
		}
		if i == 0 {
			a.all = span{v * f, v * f}
		}
		a.all = a.all.with(v * f)
	}
	return a, true
}

func (e *packer) putAligned(pl *place, nums []int64, a alignment) {
	w, width := &e.w, a.all.width()
	w.zigzag(a.all.low - pl.base)
	w.bits(uint64(width), 7)
	p := bin.NewPacker(w.out)
	for _, v := range nums {
		p.Put(uint64(v*a.factor()-a.all.low), width)
	}
	w.out = p.Finish()
}

// readAligned reads numbers that are at the largest scale of their column.
func (u *Unpacker) readAligned(pl *place, g *given) {
	r := &u.r
	low := pl.base + r.zigzag()
	width := uint(r.wide(7))
	packed := u.packed(g.n, width)
	at := u.at[int(u.walk.pc)*int(subs)+int(subKind)]
	if r.err != nil || at == 0 {
		r.fail("aligned numbers without scales")
		return
	}
	a, ok := alignmentOf(u.leaves[at-1].kinds)
	for _, d := range packed {
		v, f := low+int64(d), a.factor()
		if !ok || f == 0 || v%f != 0 {
			r.fail("number that is not aligned")
			return
		}
		g.nums = append(g.nums, v/f)
	}
}
