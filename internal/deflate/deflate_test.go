package deflate_test

import (
	"bytes"
	"compress/flate"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/deflate"
)

// made is an input as testdata/golden.py makes it.
func made(kind string, size int, seed uint32) []byte {
	out, x := []byte{}, seed
	for len(out) < size {
		x = (x*1103515245 + 12345) & 0x7fffffff
		n := int(x >> 16)
		switch kind {
		case "zeros":
			out = append(out, 0)
		case "noise":
			out = append(out, byte(n))
		case "two":
			out = append(out, byte('a'+n&1))
		case "skewed":
			out = append(out, byte((n&255)*(n>>8&15)*(n>>12&7)>>9))
		case "far":
			if len(out) > 40000 {
				at := len(out) - 32400 - n&511
				out = append(out, out[at:at+n%40+5]...)
			} else {
				out = append(out, byte(n))
			}
		default:
			name := strings.Repeat([]string{"alpha", "beta", "gamma", "delta"}[n>>6&3], n>>8&3)
			out = fmt.Appendf(out, "<item n=\"%d\"><name>%s</name><price>%d</price></item>", n&63, name, n>>3)
		}
	}
	return out[:size]
}

// TestGolden: the output is that of zlib, for inputs of all kinds and all parameters.
func TestGolden(t *testing.T) {
	golden, err := os.ReadFile("testdata/golden.txt")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(golden)), "\n")
	require.NotEmpty(t, lines)
	for _, line := range lines {
		var kind string
		var size, want int
		var seed, sum uint32
		var p deflate.Params
		_, err := fmt.Sscan(line, &kind, &size, &seed, &p.Level, &p.Window, &p.Memory, &want, &sum)
		require.NoError(t, err)
		got, ok := deflate.Append([]byte("before"), made(kind, size, seed), p)
		if !ok && kind == "two" {
			continue // it takes too much work
		}
		require.True(t, ok, line)
		got = got[len("before"):]
		assert.Equal(t, want, len(got), line)
		assert.Equal(t, sum, crc32.ChecksumIEEE(got), line)
	}
}

// TestTooMuch: what is too long, or takes too much work, is not coded; it costs the next one
// nothing.
func TestTooMuch(t *testing.T) {
	best := deflate.Params{Level: 9, Window: 15, Memory: 9}
	_, ok := deflate.Append(nil, make([]byte, deflate.MaxPlain+1), best)
	assert.False(t, ok)
	_, ok = deflate.Append(nil, contrived(), best)
	assert.False(t, ok, "4096 comparisons of each byte")
	for _, p := range []deflate.Params{{}, {10, 15, 8}, {6, 16, 8}, {6, 8, 8}, {6, 15, 10}, {6, 15, 0}} {
		_, ok = deflate.Append(nil, []byte("<a/>"), p)
		assert.False(t, ok, "%v", p)
	}
	got, ok := deflate.Append(nil, []byte("abc"), best)
	assert.True(t, ok)
	assert.Equal(t, "4b4c4a0600", fmt.Sprintf("%x", got))
}

// contrived are bytes that match in many places, nowhere for long.
func contrived() (b []byte) {
	for i := 0; len(b) < 200_000; i++ {
		b = append(b, 'a', 'a', 'a', byte(i), byte(i>>8))
	}
	return b
}

// FuzzAppend: what comes out unfolds to what went in.
func FuzzAppend(f *testing.F) {
	for i, kind := range []string{"xml", "zeros", "noise", "two", "skewed", "far"} {
		f.Add(made(kind, 2_000, uint32(i)), byte(i+4), byte(6), byte(i))
	}
	f.Fuzz(func(t *testing.T, in []byte, level, window, memory byte) {
		p := deflate.Params{Level: int(level%9) + 1, Window: int(window%7) + 9, Memory: int(memory%9) + 1}
		out, ok := deflate.Append(nil, in, p)
		if !ok {
			t.Skip()
		}
		back, err := io.ReadAll(flate.NewReader(bytes.NewReader(out)))
		require.NoError(t, err)
		require.True(t, bytes.Equal(in, back))
	})
}
