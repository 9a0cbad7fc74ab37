package service

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGarbageBesideWhatIsUsed: as much as is used while that is little, then 16 MB, then a quarter.
func TestGarbageBesideWhatIsUsed(t *testing.T) {
	for live, percent := range map[uint64]int{
		0: 100, 16 << 20: 100, 20 << 20: 80, 32 << 20: 50, 64 << 20: 25, 1 << 30: 25, 1 << 50: 25,
	} {
		assert.Equal(t, percent, garbageBeside(live), live)
	}
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
	c := collect(false, time.Millisecond)
	defer c.stop()
	runtime.GC()
	require.Eventually(t, func() bool {
		return measured(forced) >= asked+2 && measured(released) >= before+56<<20
	}, time.Minute, time.Millisecond)
	asked = measured(forced)
	c.giveBack()
	assert.Equal(t, asked, measured(forced))
}
