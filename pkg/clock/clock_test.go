package clock_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/clock"
)

// Inside a bubble the machine's clock is fake and exact, so the ratio of two clocks can be tested
// exactly.
func TestClocksRunAtTheirRate(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func() clock.Clock
		k    time.Duration
	}{
		{"real", clock.Real, 1},
		{"scaled by 1", func() clock.Clock { return clock.Scaled(1) }, 1},
		{"scaled by 60", func() clock.Clock { return clock.Scaled(60) }, 60},
		{"scaled by 7", func() clock.Clock { return clock.Scaled(7) }, 7},
		{"below 0 is 1", func() clock.Clock { return clock.Scaled(-3) }, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := tc.make()
				from, virtual := time.Now(), c.Now()
				assert.Equal(t, from, virtual, "both agree at the start")

				require.NoError(t, c.Sleep(t.Context(), time.Hour))
				assert.GreaterOrEqual(t, c.Since(virtual), time.Hour, "no wait ends early")
				assert.Less(t, c.Since(virtual), time.Hour+tc.k*time.Nanosecond)
				assert.Equal(t, time.Since(from)*tc.k, c.Now().Sub(virtual))
			})
		})
	}
}

func TestSlowMotion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, from := clock.Scaled(0.25), time.Now()
		began := c.Now()
		assert.NoError(t, c.Sleep(t.Context(), time.Second))
		assert.Equal(t, 4*time.Second, time.Since(from))
		assert.Equal(t, time.Second, c.Since(began))
		never := c.NewTimer(math.MaxInt64)
		assert.True(t, never.Stop(), "longer than the machine can say")
	})
}

func TestProcessor(t *testing.T) {
	before := clock.Processor()
	if before < 0 {
		t.Skip("this system does not tell")
	}
	for clock.Processor() == before {
		_ = strings.Repeat("work", 1000)
	}
}

func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.Scaled(10)
		from := time.Now()
		tm := c.NewTimer(time.Minute)
		assert.True(t, tm.Reset(2*time.Minute))
		<-tm.C()
		assert.Equal(t, 12*time.Second, time.Since(from))
		assert.False(t, tm.Stop())

		ran := make(chan time.Duration, 1)
		c.AfterFunc(10*time.Second, func() { ran <- time.Since(from) })
		assert.Equal(t, 13*time.Second, <-ran)

		never := c.AfterFunc(time.Second, func() { t.Error("a stopped timer fired") })
		assert.True(t, never.Stop())
		time.Sleep(time.Minute)
		assert.False(t, never.Stop())

		// As with those of package time, a timer that fired and was not received is stopped, and
		// its value is gone.
		for _, c := range []clock.Clock{clock.Real(), clock.Scaled(10)} {
			unheard := c.NewTimer(time.Second)
			time.Sleep(time.Minute)
			assert.True(t, unheard.Reset(time.Hour))
			assert.True(t, unheard.Stop())
			select {
			case <-unheard.C():
				t.Error("a stopped timer fired")
			default:
			}
		}
	})
}

// A timer may be started repeatedly while earlier starts are about to fire.
func TestTimersAreStartedAgain(t *testing.T) {
	c := clock.Scaled(1000)
	tm := c.NewTimer(time.Second)
	for range 200 {
		tm.Reset(time.Second)
		c.AfterFunc(time.Second, func() {}).Stop()
	}
	from := c.Now()
	tm.Reset(time.Second)
	<-tm.C()
	assert.GreaterOrEqual(t, c.Since(from), time.Second)
	assert.False(t, tm.Stop())
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		c := clock.Real()
		time.AfterFunc(time.Second, func() { cancel(why) })
		assert.ErrorIs(t, c.Sleep(ctx, time.Hour), why)
		assert.ErrorIs(t, c.Sleep(ctx, 0), why)
		assert.NoError(t, c.Sleep(t.Context(), -1))
	})
}
