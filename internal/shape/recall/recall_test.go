package recall_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape/recall"
	"github.com/hhfr/hhfr/internal/shared"
)

// ends are the windows of a direction of a lane.
type ends struct {
	from, to recall.History
	pack     *recall.Compressor
	unpack   recall.Decompressor
}

// send has a segment travel, and gives how many bytes it took.
func (e *ends) send(t testing.TB, segment []byte) int {
	packed, smaller := e.pack.Pack(&e.from, segment, 0)
	if !smaller {
		return len(segment)
	}
	require.Less(t, len(packed), len(segment))
	got, err := e.unpack.Unpack(&e.to, packed)
	require.NoError(t, err)
	require.True(t, bytes.Equal(segment, got))
	return len(packed)
}

func noise(n int) []byte {
	b := make([]byte, n)
	rnd := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = rnd.Read(b)
	return b
}

// TestSegmentsComeBack: through windows that are full many times over, of segments that repeat what
// is near, far, gone, and nothing; the space of a packer serves other windows in between.
func TestSegmentsComeBack(t *testing.T) {
	lanes := [3]ends{}
	pack := new(recall.Compressor)
	rnd := rand.New(rand.NewPCG(5, 6))
	var said [3][][]byte
	for i := range 400 {
		lane := rnd.IntN(len(lanes))
		e := &lanes[lane]
		e.pack = pack
		if lane > 0 {
			e.from.GotFar, e.to.GotFar = new(int), new(int)
		}
		var segment []byte
		for range 1 + rnd.IntN(4) {
			switch n := len(said[lane]); {
			case rnd.IntN(8) == 0:
				segment = append(segment, noise(rnd.IntN(300))...)
			case n == 0 || rnd.IntN(3) == 0:
				segment = fmt.Appendf(segment, "<item n='%d'>%s</item>", i,
					strings.Repeat(fmt.Sprint(i*i), rnd.IntN(400)))
			default:
				segment = append(segment, said[lane][rnd.IntN(n)]...)
			}
		}
		segment = segment[:min(len(segment), recall.MaxSegment)]
		if len(segment) > 0 {
			e.send(t, segment)
			said[lane] = append(said[lane], segment)
		}
		if i < 12 || i%50 == 0 {
			e.from.Rest()
			e.to.Rest()
		}
	}
	for i := range lanes {
		most := recall.Reach + 8<<10
		if lanes[i].from.Far() {
			most = recall.FarReach + 8<<10
		}
		assert.Equal(t, i > 0, lanes[i].to.Far())
		assert.LessOrEqual(t, lanes[i].from.Size(), most)
		assert.LessOrEqual(t, lanes[i].to.Size(), most)
	}
}

// TestWhatWasSaidTakesLittle: once said, twice said, and after as much else as a window has.
func TestWhatWasSaidTakesLittle(t *testing.T) {
	e := ends{pack: new(recall.Compressor)}
	text := []byte(`<a:Order xmlns:a="urn:orders"><a:Of>` + fmt.Sprintf("%x", noise(500)) + `</a:Of></a:Order>`)
	first := e.send(t, text)
	assert.Greater(t, first, 400)
	assert.Less(t, e.send(t, text), 12)
	assert.Less(t, e.send(t, []byte(strings.Replace(string(text), "</a:Of>", "!</a:Of>", 1))), 20)
	for i := range 12 {
		e.send(t, noise(recall.MaxSegment-i)) // not shorter, so the window does not get it
	}
	assert.Less(t, e.send(t, text), 12)
	for i := range 24 {
		e.send(t, fmt.Appendf(nil, "%x", noise(recall.MaxSegment/2-i)))
	}
	assert.Greater(t, e.send(t, text), 400, "it is forgotten")
}

// TestFirstMessagesAreInTheVocabulary: what a lane never said is copied from the vocabulary, as far
// as standards have it.
func TestFirstMessagesAreInTheVocabulary(t *testing.T) {
	all, took := 0, 0
	for _, m := range shared.Envelopes(t, false) {
		e := ends{pack: new(recall.Compressor)}
		all += len(m)
		took += e.send(t, m)
	}
	assert.Less(t, 11*took, 2*all, "%d bytes of %d", took, all)
}

// TestNothingIsRememberedOfWhatIsMalformed: a window is as it was after an error, and a segment
// that does not get shorter changes nothing.
func TestNothingIsRememberedOfWhatIsMalformed(t *testing.T) {
	e := ends{pack: new(recall.Compressor)}
	text := []byte("<order><of>somebody or other</of><of>nobody in particular</of></order>")
	packed, smaller := e.pack.Pack(&e.from, text, 0)
	require.True(t, smaller)
	good := bytes.Clone(packed)
	for name, b := range map[string][]byte{
		"nothing":             {},
		"no size":             {0, 1, 2},
		"size over a payload": {0x81, 0x80, 1, 5, 6},
		"size in a long form": append([]byte{good[0] | 0x80, 0}, good[1:]...),
		"size cut off":        {0x80},
		"bytes left over":     append(bytes.Clone(good), 1, 2, 3, 4, 5),
		"zeros at the end":    append(bytes.Clone(good), 0),
		"far":                 append([]byte{0}, good...),
		"far, and no size":    {0, 0, 1, 2},
		"a copy of nothing":   append([]byte{100}, bytes.Repeat([]byte{0xff}, 40)...),
	} {
		_, err := e.unpack.Unpack(&e.to, b)
		assert.Error(t, err, name)
		assert.True(t, e.to.Empty(), name)
	}
	got, err := e.unpack.Unpack(&e.to, good)
	require.NoError(t, err)
	assert.Equal(t, text, got)
	_, smaller = e.pack.Pack(&e.from, noise(300), 0)
	assert.False(t, smaller)
	assert.Less(t, e.send(t, text), 10)
}

// TestRestingWindowsTakeLittle: as little as what was said, whatever room its model had, and what
// follows is the same.
func TestRestingWindowsTakeLittle(t *testing.T) {
	e, other := ends{pack: new(recall.Compressor)}, ends{pack: new(recall.Compressor)}
	for i := range 20 {
		text := fmt.Appendf(nil, "<order><of>somebody or other</of><number>%d</number></order>", i*i)
		require.Equal(t, other.send(t, text), e.send(t, text))
		e.from.Rest()
		e.to.Rest()
		if i < 2 {
			assert.Less(t, e.from.Size(), 100, "it is what travelled")
		}
		assert.False(t, e.from.Empty() || e.to.Empty())
	}
}

// TestFarWindowsRestSmall: a far window takes, while it rests, what one takes that is not, and what
// follows is the same.
func TestFarWindowsRestSmall(t *testing.T) {
	e, other := ends{pack: new(recall.Compressor)}, ends{pack: new(recall.Compressor)}
	for _, e := range []*ends{&e, &other} {
		e.from.GotFar, e.to.GotFar = new(int), new(int)
	}
	rnd, words := rand.New(rand.NewPCG(1, 2)), strings.Fields(strings.Repeat("of the order and its items in a list "+
		"that was sent by somebody to another part of the works where it waits for the next delivery ", 30))
	for i, w := range words {
		if i > 40 {
			words[i] = fmt.Sprintf("%s%x", w, rnd.IntN(1<<16))
		}
	}
	text := func(i int) []byte {
		var b []byte
		for len(b) < 15<<10 {
			b = fmt.Appendf(b, "<line%d at='%d'>%s %s</line%d>\n", i, rnd.IntN(1000), words[rnd.IntN(len(words))],
				words[rnd.IntN(len(words))], i)
		}
		return b
	}
	first := text(0)
	for i := range 18 {
		segment := first
		if i > 0 {
			segment = text(i)
		}
		require.Equal(t, other.send(t, segment), e.send(t, segment))
	}
	require.Greater(t, e.from.Size(), 240<<10)
	for range 2 {
		e.from.Rest()
		e.to.Rest()
		assert.LessOrEqual(t, e.from.Size(), recall.Reach+8<<10)
		assert.LessOrEqual(t, e.to.Size(), recall.Reach+8<<10)
		for _, i := range []int{0, 1} {
			segment := [][]byte{text(20 + i), first}[i]
			require.Equal(t, other.send(t, segment), e.send(t, segment))
		}
	}
	assert.Less(t, e.send(t, first), 20)
}

func FuzzUnpack(f *testing.F) {
	var w recall.History
	p := new(recall.Compressor)
	text := []byte(`<a:Order xmlns:a="urn:orders"><a:Of>somebody or other</a:Of></a:Order>`)
	for range 3 {
		packed, _ := p.Pack(&w, text, 0)
		f.Add(bytes.Clone(packed))
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		var w recall.History
		if len(packed)%2 == 0 {
			w.GotFar = new(int)
		}
		var u recall.Decompressor
		for range 2 {
			segment, err := u.Unpack(&w, packed)
			if err == nil {
				require.LessOrEqual(t, len(segment), recall.MaxSegment)
			}
		}
	})
}

func FuzzPack(f *testing.F) {
	f.Add([]byte("<a>1</a>"), []byte("<a>1</a><a>2</a>"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		e := ends{pack: new(recall.Compressor)}
		if len(first)%2 == 0 {
			e.from.GotFar, e.to.GotFar = new(int), new(int)
		}
		for _, segment := range [][]byte{first, second, first} {
			if len(segment) > 0 && len(segment) <= recall.MaxSegment {
				e.send(t, segment)
			}
		}
	})
}

// BenchmarkPack is a message of a kind that never came, behind a full window.
func BenchmarkPack(b *testing.B) {
	var messages [][]byte
	for _, m := range shared.Envelopes(b, false) {
		if len(m) < 4096 {
			messages = append(messages, m)
		}
	}
	for _, what := range []string{"pack", "unpack", "pack far", "unpack far", "pack far by turns"} {
		b.Run(what, func(b *testing.B) {
			far, turns := strings.Contains(what, "far"), strings.Contains(what, "turns")
			e := ends{pack: new(recall.Compressor)}
			if far {
				e.from.GotFar, e.to.GotFar = new(int), new(int)
			}
			for i := range 50 {
				e.send(b, fmt.Appendf(nil, "%x", noise(recall.MaxSegment/2-i)))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m := fmt.Appendf(nil, "<n%d>%s</n%d>", i, messages[i%len(messages)], i)
				b.SetBytes(int64(len(m)))
				if strings.HasPrefix(what, "unpack") {
					b.StopTimer()
				} else if turns {
					e.pack.Size(new(recall.History), []byte("<of><another><lane/></another></of>"))
				}
				packed, _ := e.pack.Pack(&e.from, m, 0)
				if strings.HasPrefix(what, "pack") {
					continue
				}
				b.StartTimer()
				_, err := e.unpack.Unpack(&e.to, packed)
				require.NoError(b, err)
			}
		})
	}
}
