package binary_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/codec/binary"
)

const allStages = binary.Columns | binary.Memory | binary.Zstd

// packing is one direction with stages, without a stream: it packs the messages of lanes, in one frame each.
type packing struct {
	from, to *end
	epoch    uint64
}

func newPacking(t testing.TB, opt binary.Options) *packing {
	k := &packing{from: newEnd(opt), to: newEnd(opt)}
	require.Equal(t, k.from.coder.Stages(), k.to.coder.Stages())
	k.from.coder.Agree(k.from.coder.Stages())
	k.to.coder.Agree(k.to.coder.Stages())
	return k
}

// send gives the octets that a message takes, and requires it to arrive unless read is false: then it is lost on the way.
func (k *packing) send(t testing.TB, lane uint64, message string, read bool) (packed []byte, err error) {
	t.Helper()
	var number uint64
	var segments [][]byte
	require.NoError(t, k.from.coder.Split(0, nil, bytes.NewReader([]byte(message)), 16000, func(_ bool, n uint64, text bool, data []byte) error {
		require.False(t, text)
		number, segments = n, append(segments, bytes.Clone(data))
		return nil
	}))
	require.NotZero(t, number)
	require.Len(t, segments, 1)
	if fp, full, ok := k.from.coder.Announce(number); ok {
		if full != nil {
			_, err := k.to.coder.Define(number, full)
			require.NoError(t, err)
		} else {
			known, err := k.to.coder.Refer(number, fp)
			require.NoError(t, err)
			require.True(t, known)
		}
	}
	packed = k.from.coder.NewPack(lane, number, true)(nil, segments[0], false, true, 16384)
	if !read {
		return packed, nil
	}
	back, err := k.to.coder.NewUnpack(number)(lane, true, k.epoch)(nil, packed, false, true, 16384)
	if err == nil {
		require.Equal(t, string(segments[0]), string(back))
	}
	return packed, err
}

func (k *packing) sync() {
	k.from.coder.Epoch(nil, func(uint64, binary.Fingerprint) {})
	k.epoch++
	k.to.coder.Synced(func(uint64) bool { return false })
}

func order(i int, who string) string {
	return fmt.Sprintf(`<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><o><n>%d</n><who>%s</who><at>2006-06-11T04:26:%02d.318Z</at></o></s:Body></s:Envelope>`, i, who, i%60)
}

func TestMemoryMakesTheNextMessageSmall(t *testing.T) {
	for _, c := range []struct {
		without uint64
		stages  uint64
		small   bool
	}{
		{0, allStages, true},
		{binary.Zstd, binary.Columns | binary.Memory, true},
		{binary.Memory, binary.Columns | binary.Zstd, false},
		{binary.Memory | binary.Zstd, binary.Columns, false},
		{binary.Columns, binary.Zstd, false},
		{binary.Columns | binary.Zstd, 0, false},
		{allStages, 0, false},
	} {
		from := newEnd(binary.Options{Without: c.without})
		assert.Equal(t, c.stages, from.coder.Stages())
		if c.stages&binary.Columns == 0 {
			continue
		}
		k := newPacking(t, binary.Options{Without: c.without})
		var sizes []int
		for i := range 10 {
			packed, err := k.send(t, 1, order(i, "somebody with a long name"), true)
			require.NoError(t, err)
			sizes = append(sizes, len(packed))
		}
		assert.Equal(t, c.small, sizes[9] < 8, "%v", sizes)
		k.sync()
		packed, err := k.send(t, 1, order(10, "somebody with a long name"), true)
		require.NoError(t, err)
		assert.Greater(t, len(packed), 20, "a sync empties the memory")
	}
	assert.Zero(t, newEnd(binary.Options{Text: true}).coder.Stages())
}

// TestLanesTellNothingOfEachOther: what one lane sends is the same octets whatever another does, guesses of its secrets included.
func TestLanesTellNothingOfEachOther(t *testing.T) {
	secret := "the secret of lane one"
	alone, beside := newPacking(t, binary.Options{}), newPacking(t, binary.Options{})
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 200 {
		want, err := alone.send(t, 1, order(i, secret), true)
		require.NoError(t, err)
		got, err := beside.send(t, 1, order(i, secret), true)
		require.NoError(t, err)
		require.Equal(t, want, got, "message %d", i)
		guess, err := beside.send(t, 2, order(i, []string{secret, "another guess, as long", secret[:9]}[rnd.IntN(3)]), true)
		require.NoError(t, err)
		if i == 0 {
			other := newPacking(t, binary.Options{})
			blank, err := other.send(t, 2, order(0, secret), true)
			require.NoError(t, err)
			miss, err := other.send(t, 3, order(0, "the wrong of lane five"), true)
			require.NoError(t, err)
			assert.Len(t, blank, len(guess))
			assert.Len(t, miss, len(guess), "a right guess is as long as a wrong one")
		}
	}
}

func TestMessagesGivenUpLoseTheMemory(t *testing.T) {
	k := newPacking(t, binary.Options{})
	for i := range 5 {
		_, err := k.send(t, 1, order(i, "somebody"), true)
		require.NoError(t, err)
	}
	_, err := k.send(t, 1, order(5, "else"), false)
	require.NoError(t, err)
	k.to.coder.GiveUp(1, k.epoch)
	_, err = k.send(t, 1, order(6, "else"), true)
	require.True(t, k.to.coder.IsLost(err), "%v", err)
	_, err = k.send(t, 2, order(6, "other lanes go on"), true)
	require.NoError(t, err)
	k.from.coder.Restart(1)
	k.from.coder.Restart(1)
	for i := range 5 {
		_, err := k.send(t, 1, order(i, "else"), true)
		require.NoError(t, err)
	}
	k.to.coder.GiveUp(1, k.epoch)
	k.sync()
	_, err = k.send(t, 1, order(7, "else"), true)
	require.NoError(t, err, "a sync ends that, too")
}

// TestMemoryOfALaneIsBounded: messages that never repeat anything leave at most 256 KiB at each end.
func TestMemoryOfALaneIsBounded(t *testing.T) {
	const lanes = 16
	k := newPacking(t, binary.Options{})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	rnd := rand.New(rand.NewPCG(7, 8))
	message := func() string {
		var b bytes.Buffer
		b.WriteString(`<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><o>`)
		for i := range 12 {
			fmt.Fprintf(&b, "<v%d>", i)
			for range 60 {
				fmt.Fprintf(&b, "w%x ", rnd.Uint64())
			}
			fmt.Fprintf(&b, "</v%d>", i)
		}
		_, _ = io.WriteString(&b, "</o></s:Body></s:Envelope>")
		return b.String()
	}
	for range 20 {
		_, err := k.send(t, 99, message(), true)
		require.NoError(t, err)
	}
	before := heap()
	for lane := range uint64(lanes) {
		for range 30 {
			_, err := k.send(t, lane, message(), true)
			require.NoError(t, err)
		}
	}
	used := int64(heap()) - int64(before)
	assert.LessOrEqual(t, used/lanes/2, int64(256<<10), "octets of one direction's memory at one end")
	k.sync()
	assert.LessOrEqual(t, int64(heap())-int64(before), int64(1<<20), "a sync gives it back")
	runtime.KeepAlive(k)
}

// TestIdleLanesTakeLittleMemory: a thousand lanes that were used once, and are idle; they go on in step, as if nothing had been.
func TestIdleLanesTakeLittleMemory(t *testing.T) {
	const lanes = 1000
	k := newPacking(t, binary.Options{})
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what pools keep
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	send := func(from int) (octets int) {
		for i := range uint64(lanes) {
			packed, err := k.send(t, i, order(from+int(i), fmt.Sprintf("somebody with the number %d", from+int(i))), true)
			require.NoError(t, err)
			octets += len(packed)
		}
		return octets
	}
	_, err := k.send(t, 0, order(0, "anybody"), true)
	require.NoError(t, err)
	before := heap()
	first := send(0)
	used := heap() - before
	assert.Greater(t, used, int64(2*lanes*1024))
	rest := func() {
		for i := range uint64(lanes) {
			assert.False(t, k.from.coder.Rest(i))
		}
		assert.True(t, k.to.coder.Rested(), "they were used a moment ago")
		assert.False(t, k.to.coder.Rested())
	}
	rest()
	left := heap() - before
	assert.Less(t, left, int64(2*lanes*512), "octets at both ends")
	t.Logf("%d lanes: %d octets at both ends, %d when idle", lanes, used, left)
	again := send(lanes)
	assert.Less(t, 2*again, first, "what was folded is remembered")
	rest()
	send(2 * lanes)
	runtime.KeepAlive(k)
}

// TestCorpusPackedAndShuffled: the messages of the corpus in any order, on lanes, with syncs between them and messages given up, by every set of stages.
func TestCorpusPackedAndShuffled(t *testing.T) {
	var messages [][]byte
	for _, path := range shared.Messages(t) {
		messages = append(messages, shared.Read(t, path))
	}
	rnd := rand.New(rand.NewPCG(9, 10))
	for without := range allStages + 1 {
		k := newPacking(t, binary.Options{Without: without})
		octets, plain := 0, 0
		rnd.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
		for i, m := range messages {
			if without != 0 && len(m) > 1<<20 {
				continue // half of all octets: the set of all stages has them
			}
			lane := rnd.Uint64N(4)
			switch i % 40 {
			case 39:
				k.sync()
			case 20:
				k.to.coder.GiveUp(lane, k.epoch)
				k.from.coder.Restart(lane)
			case 30:
				if k.from.coder.Rest(lane) {
					k.to.coder.Idled(lane)
				}
			case 35:
				k.from.coder.Rest(lane) // the peer need not care
			case 5, 6, 13:
				k.to.coder.Rested()
			}
			n, p := k.whole(t, lane, m)
			octets, plain = octets+n, plain+p
		}
		t.Logf("without %d: content %d, as it travels %d", without, plain, octets)
		switch {
		case without&binary.Zstd == 0:
			assert.Less(t, octets, plain/2)
		case without&binary.Columns == 0:
			assert.Less(t, octets, plain*9/10)
		}
	}
}

// whole sends a message in as many frames as it takes; octets has four more for each.
func (k *packing) whole(t testing.TB, lane uint64, message []byte) (octets, plain int) {
	t.Helper()
	type segment struct {
		octets []byte
		text   bool
	}
	var number uint64
	var segments []segment
	require.NoError(t, k.from.coder.Split(0, nil, bytes.NewReader(message), 16384-32, func(_ bool, n uint64, text bool, data []byte) error {
		number, segments = n, append(segments, segment{bytes.Clone(data), text})
		return nil
	}))
	if fp, full, ok := k.from.coder.Announce(number); ok {
		if full != nil {
			_, err := k.to.coder.Define(number, full)
			require.NoError(t, err)
		} else {
			_, err := k.to.coder.Refer(number, fp)
			require.NoError(t, err)
		}
	}
	alone := len(segments) == 1
	pack, begin := k.from.coder.NewPack(lane, number, alone), k.to.coder.NewUnpack(number)
	var unpack func(dst, packed []byte, text, last bool, most int) ([]byte, error)
	if begin != nil {
		unpack = begin(lane, alone, k.epoch)
	}
	for i, s := range segments {
		packed, last := s.octets, i == len(segments)-1
		if pack != nil {
			packed = pack(nil, s.octets, s.text, last, 16384)
			require.LessOrEqual(t, len(packed), len(s.octets)+1+16384-16000)
			back, err := unpack(nil, packed, s.text, last, 16384)
			require.NoError(t, err)
			require.Equal(t, string(s.octets), string(back))
		}
		octets, plain = octets+len(packed)+4, plain+len(s.octets)
	}
	return octets, plain
}
