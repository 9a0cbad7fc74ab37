package wire_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wire"
)

// maxLaneState is what one direction of a lane may take at one end, in bytes: all that encoder or
// decoder remember of it.
const maxLaneState = 448 << 10

// TestStateOfALaneIsBounded: whatever messages come, with values that are new, a lane takes at most
// so much at each end. TestSoakStateOfALane has further messages, and more of them.
func TestStateOfALaneIsBounded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	fillLanes(t, realMessages(t), func(m string) string { return scrambled(rnd, m) }, 1, 600<<10)
}

func realMessages(t *testing.T) (all []string) {
	for _, m := range shared.Envelopes(t, true) {
		all = append(all, string(m))
	}
	return all
}

// fillLanes sends so many bytes on each of some lanes, under shapes and as
// texts, and looks now and then what the lanes take, first at the sender, then at the receiver.
func fillLanes(t *testing.T, messages []string, change func(m string) string, lanes, bytes int) {
	const other = 99
	rnd := rand.New(rand.NewPCG(11, 12))
	l, shapes := newLine(t, wire.EncoderConfig{}, allStages), newShelf()
	l.tape = append(make([]byte, 0, 2*lanes*bytes), l.tape...)
	var kinds []string
	var by []*program.Program
	for _, m := range messages {
		if s, err := learn.FromMessage([]byte(m)); err == nil && len(m) < 12<<10 { // in one frame
			kinds, by = append(kinds, m), append(by, shapes.Keep(s))
		}
	}
	send := func(lane, kind int, m string, text bool) {
		shape := by[kind]
		if text {
			shape = nil
		}
		l.whole(l.begin(uint64(lane), false, nil, []byte(m), nil, shape))
	}
	for k, m := range kinds { // the shapes are announced
		send(other, k, m, false)
	}
	l.enc.Sync(l.now)
	l.take()
	l.sent = nil
	var tape heapOfLanes
	tape.begin(len(l.tape))
	n := 0
	for sent := 0; sent < bytes; n++ {
		l.sent = map[frame.Key]*sending{}
		k, text := rnd.IntN(len(kinds)), rnd.IntN(4) == 0
		m := change(kinds[k])
		for lane := range lanes {
			send(lane, k, m, text)
		}
		if sent += len(m); n%64 == 0 {
			tape.look(len(l.tape))
		}
	}
	most := tape.most / int64(lanes)
	t.Logf("sender: %d kinds, %d messages on each lane, which takes at most %d bytes", len(kinds), n, most)
	assert.Greater(t, most, int64(32<<10), "they are remembered")
	assert.LessOrEqual(t, most, int64(maxLaneState))

	from, all := tape.looks[0], l.tape
	l = nil
	r := newReader(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20})
	read := func(b []byte) {
		left, err := r.read(b)
		require.NoError(t, err)
		require.Empty(t, left)
		for _, m := range r.messages {
			require.NoError(t, m.err)
		}
		r.messages = nil
	}
	read(all[:from])
	var heaps heapOfLanes
	heaps.begin(from)
	for _, to := range tape.looks[1:] {
		read(all[from:to])
		heaps.look(to)
		from = to
	}
	most = heaps.most / int64(lanes)
	t.Logf("receiver: at most %d bytes", most)
	assert.Greater(t, most, int64(32<<10), "they are remembered")
	assert.LessOrEqual(t, most, int64(maxLaneState))
	runtime.KeepAlive(l)
	runtime.KeepAlive(r)
}

// heapOfLanes is how much the heap has grown at most where it was looked at, at places of a tape.
type heapOfLanes struct {
	before, most int64
	looks        []int
}

func (h *heapOfLanes) begin(at int) {
	h.looks = append(make([]int, 0, 4096), at)
	h.before = heap()
}

func (h *heapOfLanes) look(at int) {
	h.most = max(h.most, heap()-h.before)
	h.looks = append(h.looks, at)
}

// scrambled is a message with other letters and digits between its tags, in words as long.
func scrambled(rnd *rand.Rand, message string) string {
	b, text := []byte(message), false
	for i, c := range b {
		switch {
		case c == '>':
			text = true
		case c == '<':
			text = false
		case !text:
		case c >= '0' && c <= '9':
			b[i] = '0' + byte(rnd.IntN(10))
		case c >= 'a' && c <= 'z':
			b[i] = 'a' + byte(rnd.IntN(26))
		case c >= 'A' && c <= 'Z':
			b[i] = 'A' + byte(rnd.IntN(26))
		}
	}
	return string(b)
}
