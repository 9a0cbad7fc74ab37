package streamer

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// TestSemaphoreIsFirstComeFirstServed: who waits is let in in turn, nobody passes a waiter, and who
// leaves the line makes room for the next.
func TestSemaphoreIsFirstComeFirstServed(t *testing.T) {
	isIn := func(w *waiter) bool {
		select {
		case <-w.ready:
			return true
		default:
			return false
		}
	}
	var g semaphore
	g.max.Store(10)
	assert.Nil(t, g.enter(20), "alone")
	assert.False(t, g.tryEnter(1))
	first, second, third := g.enter(8), g.enter(8), g.enter(2)
	g.release(20)
	assert.True(t, isIn(first))
	assert.False(t, isIn(second) || isIn(third))
	assert.False(t, g.tryEnter(1), "others wait")
	g.leave(second)
	assert.True(t, isIn(third))
	assert.EqualValues(t, 10, g.holds())
	fourth := g.enter(1)
	g.widen(11)
	assert.True(t, isIn(fourth))
	g.leave(fourth) // its turn had come
	assert.True(t, g.tryEnter(1))
	g.release(11)
	assert.Zero(t, g.holds())
	assert.Zero(t, g.waiting.Load())
}

// TestSemaphoreLosesNobody: whatever comes, leaves and gives back at the same time, no more are in
// than there may be, and all come in.
func TestSemaphoreLosesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, rounds = 5, 2000
		var g semaphore
		g.max.Store(most)
		var in atomic.Int64
		var all sync.WaitGroup
		for seed := range uint64(8) {
			all.Go(func() {
				r := rand.New(rand.NewPCG(seed, 0))
				for range rounds {
					n := 1 + r.Int64N(most)
					if w := g.enter(n); w != nil {
						if r.IntN(4) == 0 {
							g.leave(w)
							continue
						}
						<-w.ready
					}
					assert.LessOrEqual(t, in.Add(n), int64(most))
					in.Add(-n)
					g.release(n)
				}
			})
		}
		all.Wait() // synctest finds out who waits for ever
		assert.Zero(t, g.holds())
		assert.Zero(t, g.waiting.Load())
		assert.Nil(t, g.first)
	})
}
