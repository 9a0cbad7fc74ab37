package replay_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/replay"
)

func TestPace(t *testing.T) {
	for pace, want := range map[float64]time.Duration{
		0: 0, 1: 6 * time.Second, 2: 3 * time.Second, 0.5: 12 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			replay.Wait(&replay.RunConfig{Pace: pace}, t.Context(), begun, 6*time.Second)
			assert.Equal(t, want, time.Since(begun), "pace %v", pace)
			replay.Wait(&replay.RunConfig{Pace: pace}, t.Context(), begun, 0) // late already
			assert.Equal(t, want, time.Since(begun), "pace %v", pace)

			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			replay.Wait(&replay.RunConfig{Pace: pace}, ctx, time.Now(), time.Hour)
			assert.Equal(t, want, time.Since(begun), "nobody waits any more")
		})
	}
}
