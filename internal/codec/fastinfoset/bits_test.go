package fastinfoset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Indexes and lengths at the ends of the ranges of all their forms (X.891 C.22 to C.28).
func TestNumbersOfAllForms(t *testing.T) {
	back := func(b []byte, read func(r *Reader, first byte) int) int {
		var r Reader
		r.Reset(b)
		got := read(&r, r.next8())
		require.NoError(t, r.err, "%x", b)
		assert.Equal(t, len(b), r.at)
		return got
	}
	indexes := []int{
		0, 15, 16, 31, 32, 63, 64, 1039, 1040, 2079, 2080, 8255, 8256, 263183, 263184, 526367, 526368, maxIndex - 1,
	}
	for _, v := range indexes {
		assert.Equal(t, v, back(appendInteger2(nil, 0x80, v), (*Reader).integer2))
		for bit, first := range map[int]byte{3: 0x40, 4: 0xA0} {
			read := func(r *Reader, b byte) int { return r.integer(b, bit) }
			assert.Equal(t, v, back(appendInteger(nil, first, bit, v), read))
		}
	}
	for _, n := range []int{1, 2, 3, 8, 9, 64, 65, 258, 259, 264, 265, 320, 321, 70_000, 1<<31 - 1} {
		for bit, first := range map[int]byte{2: 0, 5: 0x40, 7: 0x90} {
			read := func(r *Reader, b byte) int { return int(r.length(b, bit)) }
			assert.Equal(t, n, back(appendLength(nil, first, bit, n), read))
		}
	}
	var r Reader
	r.Reset([]byte{0xFF, 0xFF, 0xFF})
	r.integer(0x18, 4)
	require.ErrorContains(t, r.err, "which has at most 1048576 entries")
}
