package http1_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
)

// chunksOf is a body in chunks of a size, the last of which is shorter.
func chunksOf(size, all int) string {
	var b strings.Builder
	for at := 0; at < all; at += size {
		n := min(size, all-at)
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, strings.Repeat("<a>text</a>", n)[:n])
	}
	return b.String() + "0\r\n\r\n"
}

var unframed = map[string]struct {
	size, body string
	marks      int // bytes that are not entity
}{
	"one size":           {"20", chunksOf(32, 32*10), 2 + 7},
	"a shorter one":      {"20", chunksOf(32, 32*10+5), 2 + 1 + 5 + 1 + 2 + 7},
	"one chunk":          {"20", chunksOf(32, 9), 2 + 1 + 3 + 1 + 2 + 7},
	"none":               {"20", "0\r\n\r\n", 2 + 5},
	"capitals":           {"2A", strings.ToUpper(chunksOf(42, 42*3)), 2 + 7},
	"trailer":            {"3", "3\r\nabc\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n", 2 + 13},
	"extension":          {"3", "3\r\nabc\r\n3;x=y\r\nabc\r\n3\r\nabc\r\n0\r\n\r\n", 2 + 1 + 9 + 1 + 2 + 7},
	"no carriage return": {"3", "3\r\nabc\r\n3\nabc\n3\r\nabc\r\n0\r\n\r\n", 4 + 4 + 4 + 4 + 2 + 7},
	"zeros":              {"003", "003\r\nabc\r\n003\r\nabc\r\n0\r\n\r\n", 2 + 7},
	"marks in it":        {"3", "3\r\na\x01\x01\r\n3\r\n\x01\x02\x03\r\n0\r\n\r\n", 3 + 2 + 7},
	"cut in a chunk":     {"3", "3\r\nabc\r\n3\r\na", 0},
	"cut in a line":      {"3", "3\r\nabc\r\n3;exten", 2 + 9},
	"cut in the end":     {"3", "3\r\nabc\r\n0\r\n\r", 2 + 6},
	"no size":            {"3", "3\r\nabc\r\nno size\r\nand so on \x01\x02", 2 + 23},
	"no line end":        {"3", "3\r\nabcabc\r\n0\r\n\r\n", 2 + 10},
	"bytes behind":       {"3", "3\r\nabc\r\n0\r\n\r\n\x01 behind", 2 + 7 + 8},
}

func TestUnframe(t *testing.T) {
	for name, c := range unframed {
		t.Run(name, func(t *testing.T) {
			entity, body := 0, http1.NewBody(http1.Framing{Kind: http1.Chunked})
			for rest, n := []byte(c.body), 0; len(rest) > 0 && !body.Done(); rest = rest[n:] {
				var e []byte
				var err error
				if e, n, err = body.Write(rest); err != nil {
					break
				}
				entity += len(e)
			}
			for step := 1; step <= len(c.body); step++ {
				travels := unframe(c.size, []byte(c.body), func() int { return step }, never)
				assert.Len(t, travels, entity+c.marks)
				for again := range []int{1, 2, 5, len(travels)} {
					raw, err := reframe(c.size, travels, func() int { return again + 1 })
					require.NoError(t, err)
					require.Equal(t, c.body, string(raw))
				}
			}
		})
	}
}

func never() bool { return false }

func unframe(size string, raw []byte, step func() int, pauses func() bool) (out []byte) {
	u := http1.NewUnframer(size)
	for len(raw) > 0 {
		n := min(step(), len(raw))
		if out, raw = u.Append(out, raw[:n]), raw[n:]; pauses() {
			out = u.Flush(out)
		}
	}
	return u.End(out)
}

func reframe(size string, travels []byte, step func() int) (out []byte, err error) {
	r, err := http1.NewReframer([]byte(size))
	for len(travels) > 0 && err == nil {
		n := min(step(), len(travels))
		if out, err = r.Append(out, travels[:n]); err == nil && n == len(travels) && r.Held() > 0 {
			return out, fmt.Errorf("%d bytes of a mark", r.Held())
		}
		travels = travels[n:]
	}
	return out, err
}

func TestUniformSize(t *testing.T) {
	equal := strings.TrimSuffix(chunksOf(32, 32*10), "0\r\n\r\n")
	for body, want := range map[string]string{
		"":                           "",
		"20":                         "",
		"20\r\nthe one chunk so far": "20",
		equal:                        "20",
		equal + "2":                  "20",
		equal + "20\r\nas before":    "20",
		equal + "21\r\nlonger":       "",
		equal + "5\r\nshort":         "",
		equal + "0\r\n\r\n":          "",
		strings.ToUpper(chunksOf(42, 42*9))[:400]: "2A",
		"0\r\n\r\n":                "",
		"3;a\r\nabc\r\n3;a\r\nabc": "",
		"3\nabc\n3\nabc":           "",
	} {
		b := http1.NewBody(http1.Framing{Kind: http1.Chunked})
		b.Record()
		for rest, n := []byte(body), 0; len(rest) > 0; rest = rest[n:] {
			var err error
			_, n, err = b.Write(rest)
			require.NoError(t, err)
		}
		parts, all := b.Framing()
		require.True(t, all)
		assert.Equal(t, want, http1.UniformSize(parts), "%.40q", body)
	}
}

func TestReframeRefuses(t *testing.T) {
	for _, size := range []string{"", "0", "-1", "x", "1234567890abc", "3 "} {
		_, err := http1.NewReframer([]byte(size))
		assert.ErrorIs(t, err, &http1.Error{Code: http1.Malformed}, size)
	}
	for name, travels := range map[string]string{
		"unknown mark":       "abc\x01\x05",
		"in a chunk":         "a\x01\x02\x03\r\n3\x03",
		"an end in a chunk":  "a\x01\x04",
		"an end of nothing":  "\x01\x04",
		"two ends":           "abc\x01\x04\x01\x04",
		"an empty chunk":     "abc\x01\x02\x03\r\n3\x00",
		"endless framing":    "abc\x01\x02\xff\xff\xff\xff\x01",
		"no shortest number": "abc\x01\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"a huge chunk":       "abc\x01\x02\x03\r\n3\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	} {
		_, err := reframe("3", []byte(travels), func() int { return 1 })
		assert.ErrorIs(t, err, &http1.Error{Code: http1.Malformed}, name)
	}
}

// A line end behind a chunk of which nothing follows for a while is not held.
func TestUnframeFlush(t *testing.T) {
	u := http1.NewUnframer("3")
	r, err := http1.NewReframer([]byte("3"))
	require.NoError(t, err)
	var got []byte
	for _, part := range []string{"3\r\nabc\r\n", "3\r\nabc", "\r\n", "3\r\nabc\r", "\n4\r\nabcd\r\n", "0\r\n\r\n"} {
		got, err = r.Append(got, u.Flush(u.Append(nil, []byte(part))))
		require.NoError(t, err)
		if before, ok := strings.CutSuffix(part, "\r"); ok {
			part = before // half a line end
		}
		assert.True(t, bytes.HasSuffix(got, []byte(part)), "%q ends with %q", got, part)
	}
	got, err = r.Append(got, u.End(nil))
	require.NoError(t, err)
	assert.Equal(t, "3\r\nabc\r\n3\r\nabc\r\n3\r\nabc\r\n4\r\nabcd\r\n0\r\n\r\n", string(got))
}

// FuzzUnframe: whatever comes, in whatever pieces, comes again; and nothing that travels panics or
// is held.
func FuzzUnframe(f *testing.F) {
	for _, c := range unframed {
		f.Add(c.size, []byte(c.body), uint64(1))
		f.Add(c.size, unframe(c.size, []byte(c.body), func() int { return 7 }, never), uint64(2))
	}
	f.Fuzz(func(t *testing.T, size string, body []byte, seed uint64) {
		if _, err := http1.NewReframer([]byte(size)); err != nil {
			return
		}
		rnd := rand.New(rand.NewPCG(seed, 0))
		step := func() int { return 1 + rnd.IntN(20) }
		raw, err := reframe(size, unframe(size, body, step, func() bool { return rnd.IntN(3) == 0 }), step)
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, raw))
		once, err := reframe(size, body, step)
		if whole, err2 := reframe(size, body, func() int { return len(body) }); err == nil {
			require.NoError(t, err2)
			require.True(t, bytes.Equal(once, whole))
		}
	})
}
