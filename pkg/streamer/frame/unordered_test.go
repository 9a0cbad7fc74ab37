package frame_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

func TestHelloUnordered(t *testing.T) {
	h := frames["hello-initiator"].(frame.Hello)
	ordered := h.AppendTo(nil)
	h.Unordered = true
	b := h.AppendTo(nil)
	assert.Len(t, b, len(ordered)+1)
	got, n, err := frame.Parse(b, 0, 0)
	require.NoError(t, err)
	assert.Equal(t, len(b), n)
	assert.Equal(t, h, got)
}

// messagesOf are data frames of some messages of an unordered direction, as they leave.
func messagesOf(r *rand.Rand, messages int) (list []frame.Data, content map[frame.Key]string) {
	var seals frame.Seals
	content = map[frame.Key]string{}
	for i := range messages {
		n := 1 + r.IntN(4)
		for k := range n {
			f := frame.Data{First: k == 0, Last: k == n-1, Lane: uint64(i % 3), Exchange: uint64(1 + i/2), Reply: i%2 == 1, Payload: []byte{byte(i), byte(k)}}
			content[f.Key()] += string(f.Payload)
			seals.Seal(&f, nil)
			list = append(list, f)
		}
	}
	return list, content
}

// Fragments in any order give the same messages.
func TestFragmentsInAnyOrder(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		list, content := messagesOf(r, 20)
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		fragments := frame.Fragments{MaxEarly: 60, MaxBytes: 1000}
		got := map[frame.Key]string{}
		for _, f := range list {
			parsed, n, err := frame.ParseData(f.AppendTo(nil), 0, 0)
			require.NoError(t, err)
			require.Positive(t, n)
			ready, err := fragments.Take(parsed, 0)
			require.NoError(t, err)
			for _, d := range ready {
				assert.Equal(t, got[d.Key()] == "", d.First)
				got[d.Key()] += string(d.Payload)
			}
		}
		assert.Equal(t, content, got)
		assert.Zero(t, fragments.Len())
	}
}

func TestFragmentsBounds(t *testing.T) {
	later := func(number byte, octets int) frame.Data {
		return frame.Data{NamesExchange: true, Exchange: 1, Payload: append([]byte{number}, make([]byte, octets)...)}
	}
	fragments := frame.Fragments{MaxEarly: 2, MaxBytes: 10}
	for _, f := range []frame.Data{later(1, 4), later(3, 6)} {
		_, err := fragments.Take(f, 0)
		require.NoError(t, err)
	}
	_, err := fragments.Take(later(2, 0), 7)
	assert.Equal(t, frame.TooLarge, codeOf(t, err, 7))
	assert.True(t, fragments.Cancel(frame.Key{Exchange: 1}))
	assert.False(t, fragments.Cancel(frame.Key{Exchange: 1}))
	_, err = fragments.Take(later(1, 11), 0)
	assert.Equal(t, frame.TooLarge, codeOf(t, err, 0), "octets, too")
	_, err = fragments.Take(later(1, 10), 0)
	assert.NoError(t, err, "a message given up leaves its room")
}

func codeOf(t *testing.T, err error, at int64) frame.Code {
	t.Helper()
	var e *frame.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, at, e.At)
	return e.Code
}

// FuzzFragments: whatever frames come, fragments of a message are handed over in order, and what waits is bounded.
func FuzzFragments(f *testing.F) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 2))
		list, _ := messagesOf(r, 6)
		var b []byte
		for _, i := range r.Perm(len(list)) {
			b = list[i].AppendTo(b)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fragments := frame.Fragments{MaxEarly: 4, MaxBytes: 64}
		open := map[frame.Key]bool{}
		taken, handed := 0, 0
		for len(b) > 0 {
			d, n, err := frame.ParseData(b, 0, 0)
			if err != nil || n == 0 || b[0] < 0x80 {
				return
			}
			b = b[n:]
			taken += len(d.Payload)
			ready, err := fragments.Take(d, 0)
			if err != nil {
				var e *frame.Error
				require.ErrorAs(t, err, &e)
				return
			}
			for _, r := range ready {
				require.Equal(t, !r.First, open[r.Key()], "first fragments first, once")
				open[r.Key()] = true
				if r.Last {
					delete(open, r.Key())
				}
				handed += len(r.Payload)
			}
			require.LessOrEqual(t, handed, taken)
			require.LessOrEqual(t, len(open), fragments.Len())
		}
	})
}
