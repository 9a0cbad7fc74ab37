package spool

import "math/bits"

const (
	// block is the unit of space in the file, in bytes.
	block = 16 << 10
	// enough is the size of the file that is kept anyway, in blocks.
	enough = 256
)

// blocks are those of the file. The lowest ones are taken first, so that its end becomes free.
type blocks struct {
	used []uint64 // a bit each; the last word is not 0
	from int      // no word before it has a free block
	most int64    // blocks that the file may have
}

// take takes the lowest block that is free.
func (b *blocks) take() int64 {
	for b.from < len(b.used) && b.used[b.from] == ^uint64(0) {
		b.from++
	}
	n := int64(b.from * 64)
	if b.from < len(b.used) {
		n += int64(bits.TrailingZeros64(^b.used[b.from]))
	}
	b.takeAt(n)
	return n
}

// takeAt takes a block if it is free.
func (b *blocks) takeAt(n int64) bool {
	word, bit := int(n/64), uint64(1)<<(n%64)
	for len(b.used) <= word {
		b.used = append(b.used, 0)
	}
	if b.used[word]&bit != 0 {
		return false
	}
	b.used[word] |= bit
	b.most = max(b.most, n+1)
	return true
}

// free gives blocks back.
func (b *blocks) free(first, count int64) {
	for n := first; n < first+count; n++ {
		b.used[n/64] &^= 1 << (n % 64)
	}
	b.from = min(b.from, int(first/64))
	for len(b.used) > 0 && b.used[len(b.used)-1] == 0 {
		b.used = b.used[:len(b.used)-1]
	}
}

// end is the number behind the last block in use.
func (b *blocks) end() int64 {
	if len(b.used) == 0 {
		return 0
	}
	last := len(b.used) - 1
	return int64(last*64 + bits.Len64(b.used[last]))
}
