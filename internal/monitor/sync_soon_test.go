package monitor

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestSyncSoon: who asks within ten seconds of a sync has the next one when they are over, unless
// he has left.
func TestSyncSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs atomic.Int32
		m := &Monitor{sync: func() int { syncs.Add(1); return 1 }}
		m.syncSoon(t.Context())
		assert.Equal(t, int32(1), syncs.Load(), "nobody has asked before")
		time.Sleep(4 * time.Second)
		m.syncSoon(t.Context())
		left, leave := context.WithCancel(t.Context())
		m.syncSoon(left)
		leave()
		time.Sleep(resyncInterval - 4*time.Second - time.Nanosecond)
		assert.Equal(t, int32(1), syncs.Load())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(t, int32(2), syncs.Load())
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, int32(2), syncs.Load(), "the other one has left")
	})
}
