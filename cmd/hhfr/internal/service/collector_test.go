package service

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGarbageBesideWhatIsUsed: 16 MB, but no more than four times what is used, nor less than a
// part of it.
func TestGarbageBesideWhatIsUsed(t *testing.T) {
	for live, percent := range map[uint64][2]int{
		0: {400, 400}, 4 << 20: {400, 400}, 8 << 20: {200, 200}, 16 << 20: {100, 100}, 20 << 20: {80, 100},
		32 << 20: {50, 100}, 64 << 20: {25, 100}, 1 << 30: {25, 100}, 1 << 50: {25, 100},
	} {
		assert.Equal(t, percent[0], garbageBeside(live, frugalGarbage), live)
		assert.Equal(t, percent[1], garbageBeside(live, usualGarbage), live)
	}
}

// TestCollectorAdapts: the percentage follows what is in use, is that of before when nobody adapts
// it any more, and is the user's where he has set one.
func TestCollectorAdapts(t *testing.T) {
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	stop := Collect(true)
	require.Eventually(t, func() bool {
		runtime.GC()
		return percent() > usualGarbage
	}, time.Minute, time.Millisecond, "little is in use in this test")
	held := make([]byte, 100<<20)
	require.Eventually(t, func() bool {
		runtime.GC()
		return percent() == frugalGarbage
	}, time.Minute, time.Millisecond)
	runtime.KeepAlive(held)
	stop()
	assert.Equal(t, 77, percent())

	t.Setenv("GOGC", "55")
	stop = Collect(true)
	runtime.GC()
	assert.Equal(t, 77, percent())
	stop()
}

// TestRestGivesMemoryBack: what was free when the process came to rest is the kernel's, without
// that anybody asks; once, as long as it rests.
func TestRestGivesMemoryBack(t *testing.T) {
	const forced, released = "/gc/cycles/forced:gc-cycles", "/memory/classes/heap/released:bytes"
	held := make([]byte, 64<<20)
	for i := range held {
		held[i] = 1
	}
	before, asked := measured(released), measured(forced)
	runtime.KeepAlive(held)
	c := collect(0, time.Millisecond)
	defer c.stop()
	runtime.GC()
	require.Eventually(t, func() bool {
		return measured(forced) >= asked+2 && measured(released) >= before+56<<20
	}, time.Minute, time.Millisecond)
	asked = measured(forced)
	c.giveBack()
	assert.Equal(t, asked, measured(forced))
}
