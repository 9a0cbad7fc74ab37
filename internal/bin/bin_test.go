package bin_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bin"
)

func TestCursorRemembersItsFirstFailure(t *testing.T) {
	c := bin.NewCursor([]byte{1, 2, 3}, 100)
	assert.Equal(t, byte(1), c.U8())
	assert.Nil(t, c.Take(5))
	var e *bin.Error
	require.ErrorAs(t, c.Err(), &e)
	assert.Equal(t, bin.Error{Code: bin.Truncated, At: 101, Need: 5, Have: 2}, *e)
	assert.Zero(t, c.U8())
	assert.Zero(t, c.Uvarint())
	assert.Zero(t, c.Len())
	assert.True(t, errors.Is(c.Err(), &bin.Error{Code: bin.Truncated}))
}

func TestUvarint(t *testing.T) {
	for _, v := range []uint64{0, 1, 127, 128, 16383, 16384, math.MaxUint32, math.MaxUint64} {
		b := binary.AppendUvarint(nil, v)
		c := bin.NewCursor(b, 0)
		assert.Equal(t, v, c.Uvarint())
		assert.NoError(t, c.Err())
		for cut := range b {
			c := bin.NewCursor(b[:cut], 0)
			c.Uvarint()
			assert.ErrorIs(t, c.Err(), &bin.Error{Code: bin.Truncated}, "%d cut at %d", v, cut)
		}
	}
	for _, b := range [][]byte{{0x80, 0}, {0xff, 0x80, 0}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}} {
		c := bin.NewCursor(b, 0)
		c.Uvarint()
		assert.ErrorIs(t, c.Err(), &bin.Error{Code: bin.Overlong}, "% x", b)
	}
}

func TestCountAndBytesRefuseBeforeReading(t *testing.T) {
	c := bin.NewCursor(binary.AppendUvarint(nil, 1<<40), 7)
	assert.Nil(t, c.Bytes(1<<20))
	assert.ErrorIs(t, c.Err(), &bin.Error{Code: bin.TooLarge})
	c = bin.NewCursor([]byte{5, 'a', 'b'}, 0)
	assert.Nil(t, c.Bytes(10))
	assert.ErrorIs(t, c.Err(), &bin.Error{Code: bin.Truncated})
	c = bin.NewCursor(bin.AppendBytes(nil, []byte("abc")), 0)
	assert.Equal(t, []byte("abc"), c.Bytes(10))
	assert.NoError(t, c.Err())
}

func TestZigzag(t *testing.T) {
	for _, v := range []int64{0, -1, 1, 63, -64, math.MaxInt64, math.MinInt64} {
		assert.Equal(t, v, bin.Unzigzag(bin.Zigzag(v)))
	}
	assert.Equal(t, uint64(1), bin.Zigzag(-1))
	assert.Equal(t, uint64(2), bin.Zigzag(1))
}

func TestPackedGivesEveryWidthBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for w := uint(0); w <= 64; w++ {
		for _, n := range []int{0, 1, 2, 7, 8, 9, 100} {
			vals := make([]uint64, n)
			for i := range vals {
				if w > 0 {
					vals[i] = rnd.Uint64() >> (64 - w)
				}
			}
			p := bin.NewPacker(nil)
			for _, v := range vals {
				p.Put(v, w)
			}
			b := p.Finish()
			require.Len(t, b, bin.PackedLen(n, int(w)))
			for begun := uint(0); begun < 64 && w > 0; begun += 13 {
				all := bin.NewPacker([]byte{1, 2, 3})
				all.Put(1, begun)
				bin.PutAbove(&all, vals, 0, w)
				all.Put(1, 1)
				packed := all.Finish()
				require.Len(t, packed, 3+bin.PackedLen(1, int(begun)+n*int(w)+1))
				u, got := bin.NewUnpacker(packed[3:]), make([]uint64, n)
				u.Skip(uint64(begun))
				bin.TakeAbove(&u, got, 0, w)
				require.Equal(t, vals, got, "width %d after %d bits", w, begun)
				require.Equal(t, uint64(1), u.Take(1))
			}
			u := bin.NewUnpacker(b)
			for i, v := range vals {
				require.Equal(t, v, u.Take(w), "width %d value %d", w, i)
			}
		}
	}
}

func TestUnpackerSkipsAndReadsMixedWidths(t *testing.T) {
	p := bin.NewPacker([]byte{0xEE})
	for i := range 50 {
		p.Put(uint64(i), 13)
		p.Put(uint64(i&1), 1)
	}
	u := bin.NewUnpacker(p.Finish()[1:])
	u.Skip(14 * 10)
	for i := 10; i < 50; i++ {
		require.Equal(t, uint64(i), u.Take(13))
		require.Equal(t, uint64(i&1), u.Take(1))
	}
}
