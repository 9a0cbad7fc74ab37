// Package clock is the one clock that is injected wherever a package waits or reads the time: the
// machine's own, or one that runs K times faster, so that an hour on a slow link can be run in a
// minute (design: one clock).
package clock

import (
	"context"
	"math"
	"time"
)

// A Clock tells the time and waits. Every method is safe for concurrent use.
type Clock interface {
	// Now returns the time on this clock.
	Now() time.Time
	// Since returns the time on this clock from t until now; it has no wall-clock steps when t came
	// from this clock's Now.
	Since(t time.Time) time.Duration
	// Sleep waits for d, or until ctx is done; then it returns the cause of ctx. It checks ctx
	// first, also for d <= 0.
	Sleep(ctx context.Context, d time.Duration) error
	// NewTimer returns a timer that fires once after d. Stop it when it is no longer needed.
	NewTimer(d time.Duration) Timer
	// AfterFunc runs f in a goroutine of its own after d, unless it is stopped before. The timer's
	// C is nil.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer waits on the [Clock] that made it; durations are on that clock. Its methods are those of
// [time.Timer], with the same guarantees.
type Timer interface {
	// C receives once when the timer fires. The value is not on this clock: ask Now.
	C() <-chan time.Time
	// Stop ends the timer and reports whether that was in time.
	Stop() bool
	// Reset starts the timer again with d and reports whether it was running.
	Reset(d time.Duration) bool
}

// Real returns the machine's clock.
func Real() Clock { return &clock{k: 1, start: time.Now()} }

// Scaled returns a clock that starts at the present and from then on runs k times faster than the
// machine's: a timer of one second fires after 1/k seconds. k below 1 is slow motion; 0 and less
// mean 1. No timer fires early on it: waits are rounded up. Where the system can, its waits end
// within some 0.1 ms, because lateness counts k times; the machine's end up to 1 ms late.
func Scaled(k float64) Clock {
	if !(k > 0) {
		k = 1
	}
	return &clock{k: k, start: time.Now(), exact: true}
}

type clock struct {
	k     float64   // virtual time per real time
	start time.Time // the moment at which both agree
	exact bool      // timers are those of exact.go
}

func (c *clock) Now() time.Time {
	if c.k == 1 {
		return time.Now()
	}
	return c.start.Add(time.Duration(float64(time.Since(c.start)) * c.k))
}

func (c *clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *clock) NewTimer(d time.Duration) Timer {
	if c.exact {
		return newExact(c, make(chan time.Time, 1), nil, d)
	}
	return timer{time.NewTimer(c.real(d)), c}
}

func (c *clock) AfterFunc(d time.Duration, f func()) Timer {
	if c.exact {
		return newExact(c, nil, f, d)
	}
	return timer{time.AfterFunc(c.real(d), f), c}
}

// real returns how long d lasts on the machine's clock.
func (c *clock) real(d time.Duration) time.Duration {
	if d <= 0 || c.k == 1 {
		return d
	}
	q := math.Ceil(float64(d) / c.k)
	if q >= math.MaxInt64 {
		return math.MaxInt64
	}
	if time.Duration(q*c.k) < d {
		q++ // because of rounding, for a k that is no whole number
	}
	return time.Duration(q)
}

type timer struct {
	t *time.Timer
	c *clock
}

func (t timer) C() <-chan time.Time        { return t.t.C }
func (t timer) Stop() bool                 { return t.t.Stop() }
func (t timer) Reset(d time.Duration) bool { return t.t.Reset(t.c.real(d)) }
