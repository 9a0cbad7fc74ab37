package columns

import (
	"bytes"
	"math/bits"
)

// dictionary finds the few different values of a column.
type dictionary struct {
	nums  []int64
	strs  [][]byte
	index []uint16
	table [512]uint16
	used  []uint16
}

// numbers tells how many different values there are, 0 if too many.
func (d *dictionary) numbers(nums []int64) int {
	var seen [4]uint64 // places that the hashes of the first values take
	for _, v := range nums[:min(len(nums), 2*maxFew)] {
		h := uint64(v) * golden >> (64 - 8)
		seen[h>>6] |= 1 << (h & 63)
	}
	first, second := bits.OnesCount64(seen[0])+bits.OnesCount64(seen[1]),
		bits.OnesCount64(seen[2])+bits.OnesCount64(seen[3])
	if first+second > maxFew {
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
