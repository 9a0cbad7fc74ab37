package clock

import (
	"sync"
	"time"
)

// lead is the part of a wait that is left to [rest]: more than the runtime's timers are late, and
// short, since it blocks a thread.
const lead = 1500 * time.Microsecond

// exact is a timer that the runtime's timer wakes a little early, and that waits for the remaining
// time on a thread.
type exact struct {
	clock *clock
	ch    chan time.Time // nil if f is to be run
	f     func()

	mu      sync.Mutex
	coarse  *time.Timer
	start   uint64 // counts the starts: waits of an earlier one no longer fire
	running bool
}

func newExact(c *clock, ch chan time.Time, f func(), d time.Duration) *exact {
	e := &exact{clock: c, ch: ch, f: f}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.startLocked(c.real(d))
	return e
}

func (e *exact) startLocked(d time.Duration) {
	e.start++
	e.running = true
	start, due := e.start, time.Now().Add(d)
	e.coarse = time.AfterFunc(d-lead, func() { e.fire(start, due) })
}

func (e *exact) fire(start uint64, due time.Time) {
	if left := time.Until(due); left > 0 {
		rest(left)
	}
	if left := time.Until(due); left > 0 {
		time.Sleep(left)
	}
	e.mu.Lock()
	if !e.running || e.start != start {
		e.mu.Unlock()
		return
	}
	e.running = false
	if e.ch != nil {
		e.ch <- time.Now() // it is empty, and nobody else fills it
	}
	e.mu.Unlock()
	if e.f != nil {
		e.f()
	}
}

// C implements [Timer].
func (e *exact) C() <-chan time.Time { return e.ch }

// Stop implements [Timer].
func (e *exact) Stop() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopLocked()
}

func (e *exact) stopLocked() (was bool) {
	was, e.running = e.running, false
	e.coarse.Stop()
	select {
	case <-e.ch:
		was = true // it fired and was not received: as if it had not fired
	default:
	}
	return was
}

// Reset implements [Timer].
func (e *exact) Reset(d time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.stopLocked()
	e.startLocked(e.clock.real(d))
	return was
}
