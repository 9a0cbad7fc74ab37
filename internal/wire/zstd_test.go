package wire_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wire"
)

var update = flag.Bool("update", false, "write the test vectors anew")

// noise are octets that no compressor makes smaller.
func noise(n int) []byte {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// text sends a segment of text, in one frame, and gives what it travels as.
func (p *pair) text(lane uint64, segment []byte) []byte {
	p.t.Helper()
	segments := p.send(lane, nil, string(segment))
	require.Len(p.t, segments, 1)
	return segments[0]
}

func TestTextIsCompressedWhereItPays(t *testing.T) {
	soap := []byte(order(1, strings.Repeat("somebody or other ", 100)))
	for _, c := range []struct {
		name    string
		segment []byte
		most    int // octets that it travels as
		exactly bool
	}{
		{"nothing", nil, 0, true},
		{"short", soap[:31], 31, true},
		{"an envelope, against the vocabulary", []byte(order(7, "me")), 90, false},
		{"long", soap, 180, false},
		{"a whole fragment", bytes.Repeat(soap, 10)[:16000], 300, false},
		{"noise", noise(3000), 3000, true},
		{"begins as a frame does", append([]byte{0xfc}, noise(50)...), 52, true},
		{"begins as what is marked does", append([]byte{0xf8}, noise(2000)...), 2002, true},
		{"begins as a frame does, and gets smaller", append([]byte{0xfc}, soap...), 182, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := len(newPair(t, wire.EncoderConfig{}, allStages).text(1, c.segment))
			assert.LessOrEqual(t, n, c.most)
			if c.exactly {
				assert.Equal(t, c.most, n)
			}
			without := newPair(t, wire.EncoderConfig{}, wire.Columns|wire.Memory)
			assert.Equal(t, string(c.segment), string(without.text(1, c.segment)))
		})
	}
}

// TestWhatGetsNoSmallerIsLeftAlone: on its lane, and for a while.
func TestWhatGetsNoSmallerIsLeftAlone(t *testing.T) {
	p, soap := newPair(t, wire.EncoderConfig{}, allStages), []byte(order(1, strings.Repeat("somebody or other ", 100)))
	smaller := func(lane uint64) bool { return len(p.text(lane, soap)) < len(soap) }
	p.text(1, noise(3000))
	assert.True(t, smaller(2), "another lane")
	assert.False(t, smaller(1), "left alone")
	assert.True(t, smaller(1))
	for range 100 {
		p.text(1, noise(3000))
	}
	left := 0
	for !smaller(1) {
		left++
	}
	assert.LessOrEqual(t, left, 15)
	assert.True(t, smaller(1))
	p.text(1, noise(3000))
	p.sync()
	assert.True(t, smaller(1), "a sync ends that")
}

// TestNoiseIsNotTried: of long segments those are left alone that no frame makes smaller, and none
// that a frame makes smaller.
func TestNoiseIsNotTried(t *testing.T) {
	compress := wire.NewCompressor()
	left := 0
	for i := range 200 {
		segment := noise(16384 - i)
		require.GreaterOrEqual(t, len(compress(segment)), len(segment))
		if wire.IsNoise(segment) {
			left++
		}
	}
	assert.GreaterOrEqual(t, left, 190)
	random := rand.New(rand.NewPCG(1, 2))
	mixed := func(rare int) []byte { // one byte of so many is the same
		b := noise(16384)
		for i := range b {
			if random.IntN(rare) == 0 {
				b[i] = 'a'
			}
		}
		return b
	}
	for name, segment := range map[string][]byte{
		"text":                shared.Read(t, shared.Testdata(t, "soap", "ews-finditem-response.xml")),
		"base64":              []byte(base64.StdEncoding.EncodeToString(noise(12000))),
		"hexadecimal":         []byte(hex.EncodeToString(noise(8000))),
		"the same 2 KiB":      bytes.Repeat(noise(2048), 8),
		"half of it is zeros": append(noise(8192), make([]byte, 8192)...),
		"a third is one byte": mixed(3),
		"a fifth is one byte": mixed(5),
	} {
		assert.Less(t, len(compress(segment)), len(segment), name)
		assert.False(t, wire.IsNoise(segment), name)
	}
	for _, short := range []int{0, 1, 1024, 4095} {
		assert.False(t, wire.IsNoise(noise(short)), "a try takes no longer than a look")
	}
}

// TestCompressionTellsNothingOfOtherLanes: what one lane sends is the same octets whatever
// others had compressed before.
func TestCompressionTellsNothingOfOtherLanes(t *testing.T) {
	alone, beside := newPair(t, wire.EncoderConfig{}, announcing), newPair(t, wire.EncoderConfig{}, allStages)
	by, byToo := alone.learn(order(0, "anybody")), beside.learn(order(0, "anybody"))
	rnd := rand.New(rand.NewPCG(3, 4))
	var long []string
	for i := range 40 {
		long = append(long, strings.Repeat(fmt.Sprintf("the secret of %d, ", i), 10+rnd.IntN(100)))
	}
	for i := range 300 {
		if i%8 == 0 { // before one of them has to
			alone.sync()
			beside.sync()
		}
		message := order(i, long[rnd.IntN(20)])
		for range rnd.IntN(3) {
			beside.text(2, []byte(order(i, long[rnd.IntN(40)])))
			beside.text(2, noise(rnd.IntN(3000)))
			beside.send(3, byToo, order(rnd.IntN(100), long[rnd.IntN(40)]))
		}
		assert.Equal(t, alone.text(1, []byte(message)), beside.text(1, []byte(message)), "text %d", i)
		require.Equal(t, alone.send(1, by, message), beside.send(1, byToo, message), "message %d", i)
	}
	require.Len(t, beside.r.verdicts, len(alone.r.verdicts))
}

// framed is a segment in a frame.
func framed(segment []byte) string {
	return hex.EncodeToString(append([]byte{0xfc}, wire.NewCompressor()(segment)[4:]...))
}

// compressedVector is one file of testdata/vectors/zstd: a segment, and a form in which it
// travels with the stage.
type compressedVector struct {
	What       string `json:"what"`
	Packed     bool   `json:"packed"`
	Segment    string `json:"segment"`
	Compressed string `json:"compressed"`
}

var compression wire.Compression

func expand(segment []byte, packed bool) (out []byte, err error) {
	err = compression.Expand(segment, packed, func(b []byte) error {
		out = bytes.Clone(b)
		return nil
	})
	return out, err
}

// TestZstdVectors holds testdata/vectors/zstd: what stands there expands to its segment. A
// compressor may make other octets of it.
func TestZstdVectors(t *testing.T) {
	soap := []byte(order(1, strings.Repeat("somebody or other ", 100)))
	dir := shared.Testdata(t, "vectors", "zstd")
	if *update {
		p := newPair(t, wire.EncoderConfig{}, wire.Columns|wire.Memory)
		var rows strings.Builder
		for i := range 400 {
			fmt.Fprintf(&rows, "<r><a>%d</a><b>row %d of %d</b></r>", i*i*i*7919%1000, i, i*3%100)
		}
		message := `<?xml version="1.0"?>` +
			`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` +
			rows.String() + `</s:Body></s:Envelope>`
		packed := p.send(1, p.learn(message), message)[0]
		for name, v := range map[string]compressedVector{
			"text": {What: "an envelope", Segment: hex.EncodeToString(soap), Compressed: framed(soap)},
			"text-short": {What: "an envelope below 256 octets: its size is one octet",
				Segment: hex.EncodeToString(soap[:250]), Compressed: framed(soap[:250])},
			"text-plain": {What: "octets that begin with a mark", Segment: "fc00",
				Compressed: "f8fc00"},
			"packed": {What: "a packed segment", Packed: true, Segment: hex.EncodeToString(packed),
				Compressed: framed(packed)},
		} {
			b, err := json.MarshalIndent(v, "", "  ")
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(dir, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name+".json"), append(b, '\n'), 0o644))
		}
	}
	for _, v := range compressedVectors(t) {
		out, err := expand(v.travels, v.packed)
		require.NoError(t, err)
		require.Equal(t, v.segment, out)
	}
}

type compressedCase struct {
	travels, segment []byte
	packed           bool
}

func compressedVectors(tb testing.TB) (all []compressedCase) {
	for _, path := range shared.Files(tb, shared.Testdata(tb, "vectors", "zstd"), nil) {
		var v compressedVector
		require.NoError(tb, json.Unmarshal(shared.Read(tb, path), &v))
		travels, err := hex.DecodeString(v.Compressed)
		require.NoError(tb, err)
		segment, err := hex.DecodeString(v.Segment)
		require.NoError(tb, err)
		all = append(all, compressedCase{travels, segment, v.Packed})
	}
	return all
}

func TestMalformedFrames(t *testing.T) {
	frame := wire.NewCompressor()(bytes.Repeat([]byte("somebody or other, "), 50))
	good := append([]byte{0xfc}, frame[4:]...) // fc 60 size size blocks
	require.Equal(t, []byte{0xfc, 0x60}, good[:2])
	edit := func(at int, octets ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], octets)
		return b
	}
	raw := func(size int, blocks ...string) []byte { // a frame that says size
		b := []byte{0xfc, 0x60, byte(size - 256), byte((size - 256) >> 8)}
		for _, block := range blocks {
			b = append(b, block...)
		}
		return b
	}
	repeat := func(n int, last byte) string {
		return string([]byte{byte(n<<3) | 2 | last, byte(n >> 5), byte(n >> 13), 'x'})
	}
	for name, segment := range map[string][]byte{
		"nothing behind the mark": good[:1],
		"header cut off":          good[:3],
		"blocks cut off":          good[:len(good)-1],
		"no blocks":               good[:4],
		"octets behind the frame": append(bytes.Clone(good), 0),
		"a second frame": append(bytes.Clone(good), append([]byte{0x28, 0xb5, 0x2f, 0xfd},
			good[1:]...)...),
		"a window":                      edit(1, 0x40),
		"a check":                       edit(1, 0x64),
		"another dictionary":            edit(1, 0x61),
		"a reserved bit":                edit(1, 0x68),
		"a size of four octets":         edit(1, 0xa0),
		"says less than there is":       edit(2, good[2]-1, good[3]),
		"says more than there is":       edit(2, good[2]+1, good[3]),
		"says more than a payload":      raw(16385, repeat(16385, 1)),
		"says 64 KiB":                   edit(2, 0xff, 0xff),
		"bomb in one block":             raw(300, repeat(1<<20, 1)),
		"bomb in many blocks":           raw(300, strings.Repeat(repeat(16000, 0), 100), repeat(1, 1)),
		"no last block":                 raw(300, repeat(300, 0)),
		"a block of the reserved sort":  raw(300, string([]byte{7 | 8<<3, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8})),
		"a skippable frame":             {0xfc, 0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0},
		"a magic number":                append([]byte{0xfc, 0x28, 0xb5, 0x2f, 0xfd}, good[1:]...),
		"marked as plain for nothing":   {0xf8, '<', 'a'},
		"marked as plain, and no octet": {0xf8},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := expand(segment, false)
			require.Error(t, err)
		})
	}
	out, err := expand(raw(16384, repeat(16384, 1)), true)
	require.NoError(t, err)
	assert.Len(t, out, 16384, "as much as a payload has")
	out, err = expand([]byte{0xf8}, true)
	require.NoError(t, err)
	assert.Equal(t, []byte{0xf8}, out, "no mark before a packed segment: unpacking refuses it")
}

// FuzzExpand: compressed segments from a hostile peer make an error, or a segment that fits a
// payload.
func FuzzExpand(f *testing.F) {
	for _, v := range compressedVectors(f) {
		f.Add(v.travels, v.packed)
		f.Add(v.travels[:len(v.travels)/2], v.packed)
	}
	f.Fuzz(func(t *testing.T, segment []byte, packed bool) {
		if len(segment) > 16384 {
			return
		}
		out, err := expand(segment, packed)
		if err == nil {
			require.LessOrEqual(t, len(out), 16384)
		}
	})
}

// FuzzCompress: any segment comes back.
func FuzzCompress(f *testing.F) {
	for _, v := range compressedVectors(f) {
		f.Add(v.segment)
		f.Add(v.travels)
	}
	f.Fuzz(func(t *testing.T, segment []byte) {
		if len(segment) > 16000 {
			return
		}
		p := newPair(t, wire.EncoderConfig{}, allStages)
		require.LessOrEqual(t, len(p.text(1, segment)), len(segment)+1)
	})
}
