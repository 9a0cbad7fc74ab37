package deflate_test

import (
	"bytes"
	"compress/gzip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/deflate"
)

// headers are those of gzip, zlib and none.
var headers = []string{"\x1f\x8b\x08\x00\x01\x02\x03\x04\x00\xff", "\x78\x9c", ""}

// TestFind: it is found how a body was coded, for parameters that senders use; the text of a coding
// gives it back.
func TestFind(t *testing.T) {
	plain := made("xml", 6000, 1)
	for _, header := range headers {
		var f deflate.Finder
		for level := 1; level <= 9; level++ {
			for _, p := range []deflate.Params{{Level: level, Window: 15, Memory: 8},
				{Level: level, Window: 15, Memory: 9}, {Level: level, Window: 13, Memory: 6}} {
				how := deflate.Coding{Params: p, Header: header}
				coded, ok := how.Append(nil, plain)
				require.True(t, ok)
				got, c, ok := f.Find(coded)
				require.True(t, ok, "%v", how)
				assert.True(t, bytes.Equal(plain, got))
				read, ok := deflate.Parse(c.String())
				require.True(t, ok, c.String())
				again, ok := read.Append(nil, got)
				assert.True(t, ok && bytes.Equal(coded, again), "%v", how)
			}
		}
	}
}

// TestFindGivesUp: after bodies that zlib did not write, more and more are passed over, but never
// all.
func TestFindGivesUp(t *testing.T) {
	plain := made("xml", 3000, 2)
	var other bytes.Buffer
	w := gzip.NewWriter(&other)
	_, err := w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	zlibs, ok := deflate.Coding{Params: deflate.Params{Level: 6, Window: 15, Memory: 8}, Header: headers[0]}.
		Append(nil, plain)
	require.True(t, ok)
	for _, failed := range []int{1, 2, 30, 3000} {
		var f deflate.Finder
		for range failed {
			_, _, ok := f.Find(other.Bytes())
			require.False(t, ok)
		}
		passed := 0
		for ; !ok || passed == 0; passed++ {
			_, _, ok = f.Find(zlibs)
		}
		assert.LessOrEqual(t, passed, min(failed+2, 256))
		_, _, ok = f.Find(zlibs)
		assert.True(t, ok)
	}
}

// TestFindRefuses: bombs, and what is cut or changed anywhere.
func TestFindRefuses(t *testing.T) {
	how := deflate.Coding{Params: deflate.Params{Level: 9, Window: 15, Memory: 8}, Header: headers[0]}
	bomb, ok := how.Append(nil, make([]byte, deflate.MaxPlain))
	require.True(t, ok)
	_, _, ok = new(deflate.Finder).Find(bomb)
	assert.False(t, ok, "%d times what came", deflate.MaxPlain/len(bomb))
	coded, ok := how.Append(nil, made("xml", 300, 3))
	require.True(t, ok)
	for n := range coded {
		_, _, ok := new(deflate.Finder).Find(coded[:n])
		assert.False(t, ok, "cut at %d", n)
		changed := bytes.Clone(coded)
		changed[n] ^= 4
		if plain, c, ok := new(deflate.Finder).Find(changed); ok { // the time in the header, and the like
			again, _ := c.Append(nil, plain)
			assert.Equal(t, changed, again, "changed at %d", n)
		}
	}
}

// FuzzFind: whatever is found gives the same bytes back.
func FuzzFind(f *testing.F) {
	for i, header := range headers {
		coded, _ := deflate.Coding{Params: deflate.Params{Level: 6, Window: 15, Memory: 8}, Header: header}.
			Append(nil, made("xml", 1000, uint32(i)))
		f.Add(coded)
	}
	f.Fuzz(func(t *testing.T, coded []byte) {
		plain, c, ok := new(deflate.Finder).Find(coded)
		if !ok {
			return
		}
		read, ok := deflate.Parse(c.String())
		require.True(t, ok)
		again, ok := read.Append(nil, plain)
		require.True(t, ok && bytes.Equal(coded, again))
	})
}

// BenchmarkFind is what a body costs the half that sends it, and BenchmarkAppend the other one.
func BenchmarkFind(b *testing.B) {
	perBody(b, func(how deflate.Coding, plain, coded []byte) func() bool {
		var f deflate.Finder
		return func() bool { _, _, ok := f.Find(coded); return ok }
	})
}

func BenchmarkAppend(b *testing.B) {
	perBody(b, func(how deflate.Coding, plain, coded []byte) func() bool {
		return func() bool { _, ok := how.Append(nil, plain); return ok }
	})
}

func perBody(b *testing.B, of func(how deflate.Coding, plain, coded []byte) func() bool) {
	for name, size := range map[string]int{"600 bytes": 600, "10 kB": 10_000, "100 kB": 100_000} {
		for _, how := range []deflate.Coding{
			{Params: deflate.Params{Level: 6, Window: 15, Memory: 9}, Header: headers[0]},
			{Params: deflate.Params{Level: 9, Window: 15, Memory: 8}, Header: headers[0]},
		} {
			plain := made("xml", size, 1)
			coded, _ := how.Append(nil, plain)
			try := of(how, plain, coded)
			b.Run(name+", level "+how.String()[:1], func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					require.True(b, try())
				}
			})
		}
	}
}
