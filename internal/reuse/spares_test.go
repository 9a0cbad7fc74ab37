package reuse_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/reuse"
)

// TestSparesAreFew: one collection takes what was given back beyond their number, and what is kept
// comes again, once each.
func TestSparesAreFew(t *testing.T) {
	const given = 100
	var s reuse.Spares[[64]byte]
	assert.Nil(t, s.Get())
	var gone atomic.Int32
	for range given {
		v := new([64]byte)
		runtime.AddCleanup(v, func(struct{}) { gone.Add(1) }, struct{}{})
		s.Put(v)
	}
	runtime.GC()
	assert.Eventually(t, func() bool { return gone.Load() == given-reuse.MaxSpares }, 10*time.Second, time.Millisecond)
	seen := map[*[64]byte]bool{}
	for range reuse.MaxSpares {
		seen[s.Get()] = true
	}
	assert.Len(t, seen, reuse.MaxSpares)
	assert.NotContains(t, seen, (*[64]byte)(nil))
	assert.Nil(t, s.Get())
}

// TestSparesHaveOneOwner: what one gets, nobody else has.
func TestSparesHaveOneOwner(t *testing.T) {
	var s reuse.Spares[atomic.Int32]
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				v := s.Get()
				if v == nil {
					v = new(atomic.Int32)
				}
				assert.Equal(t, int32(1), v.Add(1))
				v.Add(-1)
				s.Put(v)
			}
		})
	}
	wg.Wait()
}
