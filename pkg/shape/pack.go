package shape

import (
	"bytes"
	"math"
	"math/bits"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
)

// packer writes the columns of one segment (wire-format sections 11.2 to 11.5).
type packer struct {
	gather gatherer
	w      packWriter
	memory *Memory
	recall *recall
	time   timeline
	rows   int     // of the column before, in this segment
	beside []int64 // the column of numbers before, in this segment
	room   []uint64
	dict   dictionary
	fresh  []fresh
	gaps   [2][]byte // room for those of a memory
}

// timeline is what the times of a segment so far say about the next.
type timeline struct {
	any, moved bool
	value      int64 // of the time before
	step       int64 // how far it is from the one that was remembered at its place
}

// predict gives what the next value at a place is expected to be.
func (p *place) predict(t *timeline, isTime bool) int64 {
	switch {
	case isTime && !p.known && t.any:
		return t.value
	case isTime && p.known && t.moved:
		return p.number + t.step
	}
	return p.number + p.stride
}

// note remembers a value.
func (p *place) note(v int64, t *timeline, isTime bool) {
	if isTime {
		t.any, t.value = true, v
		if t.moved = p.known; p.known {
			t.step = v - p.number
		}
	}
	step := v - p.number
	if p.stride = 0; p.known && step == p.step {
		p.stride = step
	}
	p.known, p.number, p.step = true, v, step
}

// pack appends what was gathered.
func (e *packer) pack(p *Program) {
	e.rows, e.beside = 0, nil
	for i := range e.gather.events {
		ev := &e.gather.events[i]
		o, pl := &p.Ops()[ev.pc], &e.recall.places[p.Steps()[ev.pc].place]
		if ev.leaf >= 0 {
			e.column(o, pl, ev.pc, ev.sub, &e.gather.leaves[ev.leaf])
			continue
		}
		if ev.kinded {
			e.kind(o, pl, ev.kind)
		}
		str := e.gather.seg.seg[ev.at : ev.at+ev.size]
		switch ev.sub {
		case subKind:
			e.kind(o, pl, uint16(ev.num))
		case subNumber:
			e.number(o, pl, ev.num)
		case subMinutes:
			if !e.w.flag(ev.num == int64(pl.minutes)) {
				e.w.zigzag(ev.num)
				pl.minutes = int32(ev.num)
			}
		case subText:
			if !e.w.flag(bytes.Equal(str, pl.octets)) {
				e.text(str, pl.octets)
				e.memory.keep(pl, str)
			}
		case subOctets:
			if !e.w.flag(bytes.Equal(str, pl.octets)) {
				e.octets(o, str, pl.octets)
				e.memory.keep(pl, str)
			}
		case subGroup:
			e.w.out = append(e.w.out, str...)
		}
	}
}

func (e *packer) kind(o *op, pl *place, v uint16) {
	n := o.kindBits()
	if n > 1 && e.w.flag(v == pl.kind) {
		return
	}
	e.w.bits(uint64(v), n)
	pl.kind = v
}

func (e *packer) number(o *op, pl *place, v int64) {
	isTime := o.typ == TypeDateTime
	want := pl.predict(&e.time, isTime)
	if !e.w.flag(v == want) {
		e.w.zigzag(v - want)
	}
	pl.note(v, &e.time, isTime)
}

func (e *packer) octets(o *op, b, before []byte) {
	w := &e.w
	if !o.isUUID() && !w.flag(len(b) == len(before)) {
		w.uvarint(uint64(len(b)))
	}
	w.out = append(w.out, b...)
}

// Methods of a column (wire-format section 11.4).
const (
	columnSame = iota // all as expected
	columnOne         // all the same
	columnPacked
	columnList

	numbersSteady  = 0 // all as expected
	numbersSlot    = 1 // in the range of the column before at this place
	numbersRange   = 2
	numbersSteps   = 3
	numbersFew     = 4
	numbersBeside  = 5
	numbersAligned = 6
)

func (e *packer) column(o *op, pl *place, pc int32, s sub, l *leaf) {
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

func (e *packer) kinds(o *op, pl *place, l *leaf) {
	w, wide, kinds := &e.w, o.kindBits(), l.kinds
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

// span is the smallest and largest of some numbers.
type span struct{ low, high int64 }

func (s span) with(v int64) span { return span{min(s.low, v), max(s.high, v)} }

// width is that of the differences to the lowest.
func (s span) width() uint { return uint(bits.Len64(uint64(s.high) - uint64(s.low))) }

const never = math.MaxInt

func (e *packer) numbers(o *op, pl *place, pc int32, nums []int64) {
	w, n := &e.w, len(nums)
	isTime := o.typ == TypeDateTime
	want, stride := pl.predict(&e.time, isTime), pl.stride
	first, before := want, nums[0]
	all, steps, off := span{before, before}, span{math.MaxInt64, math.MinInt64}, before^want
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
		costSteps = 24 + bits.Len64(bin.Zigzag(nums[0]-first)) + bits.Len64(bin.Zigzag(steps.low)) + (n-1)*int(steps.width())
	}
	var aside span
	if len(e.beside) == n {
		aside = span{math.MaxInt64, math.MinInt64}
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
		base := all.low
		if width < 63 && width > 0 { // leave the room that the width has on both sides
			base -= int64((1<<width - 1 - (uint64(all.high) - uint64(all.low))) / 2)
			if base > all.low {
				base = all.low
			}
		}
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

// noteColumn remembers the last value of a column, and the step to it.
func (p *place) noteColumn(nums []int64, t *timeline, isTime bool) {
	last := nums[len(nums)-1]
	if len(nums) > 1 {
		p.known, p.number = true, nums[len(nums)-2]
	}
	p.note(last, t, isTime)
	t.moved = false
}

// packed is room for n values.
func (e *packer) packed(n int) []uint64 {
	e.room = slices.Grow(e.room[:0], n)[:n]
	return e.room
}

// putAbove packs what values are above base.
func putAbove[T int64 | uint64 | uint16](w *packWriter, values []T, base T, width uint) {
	p := bin.NewPacker(w.out)
	bin.PutAbove(&p, values, base, width)
	w.out = p.Finish()
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

// dictionary finds the few different values of a column.
type dictionary struct {
	nums  []int64
	strs  [][]byte
	index []uint16
	table [512]uint16
	used  []uint16
}

const maxFew = 16

// numbers tells how many different values there are, 0 if too many.
func (d *dictionary) numbers(nums []int64) int {
	var seen [4]uint64 // places that the hashes of the first values take
	for _, v := range nums[:min(len(nums), 2*maxFew)] {
		h := uint64(v) * golden >> (64 - 8)
		seen[h>>6] |= 1 << (h & 63)
	}
	if bits.OnesCount64(seen[0])+bits.OnesCount64(seen[1])+bits.OnesCount64(seen[2])+bits.OnesCount64(seen[3]) > maxFew {
		return 0
	}
	d.nums, d.index = d.nums[:0], d.index[:0]
next:
	for _, v := range nums {
		for i, k := range d.nums {
			if k == v {
				d.index = append(d.index, uint16(i))
				continue next
			}
		}
		if len(d.nums) == maxFew {
			return 0
		}
		d.index = append(d.index, uint16(len(d.nums)))
		d.nums = append(d.nums, v)
	}
	return len(d.nums)
}

// strings tells how many different values there are, 0 if too many.
func (d *dictionary) strings(strs [][]byte) int {
	const most = len(d.table) / 2
	d.strs, d.index = d.strs[:0], d.index[:0]
	for _, at := range d.used {
		d.table[at] = 0
	}
	d.used = d.used[:0]
	last := uint16(0)
next:
	for i, b := range strs {
		if i > 0 && bytes.Equal(b, d.strs[last]) {
			d.index = append(d.index, last)
			continue
		}
		at := uint16(hashText(load8(b, 0), b) % uint64(len(d.table)))
		for ; d.table[at] > 0; at = (at + 1) % uint16(len(d.table)) {
			if k := d.table[at] - 1; bytes.Equal(d.strs[k], b) {
				last = k
				d.index = append(d.index, k)
				continue next
			}
		}
		if len(d.strs) == most {
			return 0
		}
		last = uint16(len(d.strs))
		d.strs = append(d.strs, b)
		d.index = append(d.index, last)
		d.table[at] = last + 1
		d.used = append(d.used, at)
	}
	return len(d.strs)
}
