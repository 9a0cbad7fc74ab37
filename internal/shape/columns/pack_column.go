package columns

import (
	"bytes"
	"math"
	"math/bits"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
)

func (e *packer) column(o *code.Op, pl *place, pc int32, s sub, l *leaf) {
	n := l.n
	if !e.w.flag(n == e.rows) {
		e.w.uvarint(uint64(n))
		e.rows = n
	}
	switch s {
	case subKind:
		e.kinds(o, pl, l)
	case subNumber:
		e.numbers(o, pl, pc, l.nums)
	case subMinutes:
		for _, v := range l.nums {
			if !e.w.flag(v == int64(pl.minutes)) {
				e.w.zigzag(v)
				pl.minutes = int32(v)
			}
		}
	case subText:
		e.strings(l, pl, e.text)
	case subOctets:
		e.strings(l, pl, func(b, before []byte) { e.octets(o, b, before) })
	}
}

func (e *packer) kinds(o *code.Op, pl *place, l *leaf) {
	w, wide, kinds := &e.w, o.KindBits(), l.kinds
	low, high := l.kind, l.kind
	for _, k := range kinds {
		low, high = min(low, k), max(high, k)
	}
	switch {
	case low == high && low == pl.kind:
		w.bits(columnSame, 2)
	case low == high:
		w.bits(columnOne, 2)
		w.bits(uint64(low), wide)
	default:
		w.bits(columnPacked, 2)
		w.bits(uint64(low), wide)
		width := uint(bits.Len16(high - low))
		w.bits(uint64(width), 4)
		putAbove(w, kinds, low, width)
	}
	if pl.kind = l.kind; len(kinds) > 0 {
		pl.kind = kinds[len(kinds)-1]
	}
}

const never = math.MaxInt

// base leaves the room that the width has on both sides.
func (b bounds) base() int64 {
	width, base := b.width(), b.low
	if width < 63 && width > 0 {
		base -= int64((1<<width - 1 - (uint64(b.high) - uint64(b.low))) / 2)
	}
	return min(base, b.low)
}

func (e *packer) numbers(o *code.Op, pl *place, pc int32, nums []int64) {
	w, n := &e.w, len(nums)
	isTime := o.Type == shape.TypeDateTime
	want, stride := pl.predict(&e.time, isTime), pl.stride
	first, before := want, nums[0]
	all, steps, off := bounds{before, before}, bounds{math.MaxInt64, math.MinInt64}, before^want
	for _, v := range nums[1:] {
		want += stride
		off |= v ^ want
		all = all.with(v)
		steps = steps.with(v - before)
		before = v
	}
	steady := off == 0
	width := all.width()
	costSlot, costRange := never, 24+n*int(width)+bits.Len64(bin.Zigzag(all.low-pl.base))
	if pl.width > 0 && all.low >= pl.base && uint64(all.high)-uint64(pl.base) <= 1<<pl.width-1 {
		costSlot = 3 + n*int(pl.width)
	}
	costSteps, costFew, costBeside, costAligned := never, never, never, never
	if n > 1 {
		starts := bits.Len64(bin.Zigzag(nums[0]-first)) + bits.Len64(bin.Zigzag(steps.low))
		costSteps = 24 + starts + (n-1)*int(steps.width())
	}
	var aside bounds
	if len(e.beside) == n {
		aside = bounds{math.MaxInt64, math.MinInt64}
		for i, v := range nums {
			aside = aside.with(v - e.beside[i])
		}
		costBeside = 24 + bits.Len64(bin.Zigzag(aside.low)) + n*int(aside.width())
	}
	var aligned alignment
	if best := min(costSlot, costRange, costSteps, costBeside); !steady && best > 100 {
		if d := e.dict.numbers(nums); d > 0 {
			costFew = 16 + n*bits.Len(uint(d-1))
			for i := range d {
				costFew += 8 + bits.Len64(bin.Zigzag(e.dict.nums[i]-first))
			}
		}
		if a, ok := e.alignment(pc, nums); ok {
			aligned, costAligned = a, 24+n*int(a.all.width())+bits.Len64(bin.Zigzag(a.all.low-pl.base))
		}
	}
	best := min(costSlot, costRange, costSteps, costBeside, costFew, costAligned)
	switch {
	case steady:
		w.bits(numbersSteady, 3)
	case best == costSlot:
		w.bits(numbersSlot, 3)
		putAbove(w, nums, pl.base, uint(pl.width))
	case best == costRange:
		w.bits(numbersRange, 3)
		base := all.base()
		w.zigzag(base - pl.base)
		w.bits(uint64(width), 7)
		putAbove(w, nums, base, width)
		pl.base, pl.width = base, uint8(width)
	case best == costSteps:
		w.bits(numbersSteps, 3)
		w.zigzag(nums[0] - first)
		w.zigzag(steps.low)
		w.bits(uint64(steps.width()), 7)
		packed := e.packed(n - 1)
		for i := range packed {
			packed[i] = uint64(nums[i+1] - nums[i] - steps.low)
		}
		putAbove(w, packed, 0, steps.width())
	case best == costFew:
		w.bits(numbersFew, 3)
		d := len(e.dict.nums)
		w.bits(uint64(d-1), 4)
		for _, v := range e.dict.nums {
			w.zigzag(v - first)
			first = v
		}
		putAbove(w, e.dict.index, 0, uint(bits.Len(uint(d-1))))
	case best == costAligned:
		w.bits(numbersAligned, 3)
		e.putAligned(pl, nums, aligned)
	default:
		w.bits(numbersBeside, 3)
		w.zigzag(aside.low)
		w.bits(uint64(aside.width()), 7)
		packed := e.packed(n)
		for i, v := range nums {
			packed[i] = uint64(v - e.beside[i] - aside.low)
		}
		putAbove(w, packed, 0, aside.width())
	}
	e.beside = nums
	pl.noteColumn(nums, &e.time, isTime)
}

func (e *packer) strings(l *leaf, pl *place, put func(b, before []byte)) {
	w, n, strs, before := &e.w, l.n, l.strs, pl.octets
	if len(strs) == 0 {
		if bytes.Equal(l.str, before) {
			w.bits(columnSame, 2)
			return
		}
		w.bits(columnOne, 2)
		put(l.str, before)
		e.memory.keep(pl, l.str)
		return
	}
	switch d := e.dict.strings(strs); {
	case d > 0 && d < n*3/4:
		w.bits(columnPacked, 2)
		w.uvarint(uint64(d))
		for _, b := range e.dict.strs {
			put(b, before)
			before = b
		}
		putAbove(w, e.dict.index, 0, uint(bits.Len(uint(d-1))))
	default:
		w.bits(columnList, 2)
		for _, b := range strs {
			put(b, before)
			before = b
		}
	}
	e.memory.keep(pl, strs[n-1])
}

// alignment tells how the column of the numbers at a place is aligned, and its range then; false:
// it cannot be.
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
			a.all = bounds{v * f, v * f}
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
