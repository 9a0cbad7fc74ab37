package streamer

import (
	"sync"
	"sync/atomic"
)

// waiter is a place in a line; ready is closed when its turn has come.
type waiter struct {
	n     int64
	ready chan struct{}
	next  *waiter
}

// semaphore lets at most max units in, first come, first served. One that wants more than max is
// let in alone. Where there is room and nobody waits, no lock is taken.
type semaphore struct {
	max     atomic.Int64
	used    atomic.Int64
	waiting atomic.Int64 // those in line, and who is about to be; changed under mu

	mu          sync.Mutex
	first, last *waiter
}

// widen sets the bound anew.
func (g *semaphore) widen(most int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.max.Store(most)
	g.admitLocked()
}

// isShut reports whether it lets nobody in.
func (g *semaphore) isShut() bool { return g.max.Load() == 0 }

// holds is how many units are taken.
func (g *semaphore) holds() int64 { return g.used.Load() }

// tryEnter takes n units, if that needs no waiting.
func (g *semaphore) tryEnter(n int64) bool { return g.waiting.Load() == 0 && g.take(n) }

// take takes n units, if there is room.
func (g *semaphore) take(n int64) bool {
	for {
		used := g.used.Load()
		if used != 0 && used+n > g.max.Load() {
			return false
		}
		if g.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// enter takes n units; a waiter is returned if it must be waited for, and must be waited for or
// left.
func (g *semaphore) enter(n int64) *waiter {
	if g.tryEnter(n) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting.Add(1) // who gives units back from now on looks for us
	if g.first == nil && g.take(n) {
		g.waiting.Add(-1)
		return nil
	}
	t := &waiter{n: n, ready: make(chan struct{})}
	if g.first == nil {
		g.first = t
	} else {
		g.last.next = t
	}
	g.last = t
	return t
}

// leave gives up a waiter, whether its turn had come or not.
func (g *semaphore) leave(t *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.removeLocked(t) {
		g.used.Add(-t.n)
	}
	g.admitLocked()
}

// removeLocked takes a waiter out of the line; it is false for one whose turn has come.
func (g *semaphore) removeLocked(t *waiter) bool {
	var before *waiter
	at := g.first
	for ; at != t; before, at = at, at.next {
		if at == nil {
			return false
		}
	}
	if before == nil {
		g.first = t.next
	} else {
		before.next = t.next
	}
	if g.last == t {
		g.last = before
	}
	g.waiting.Add(-1)
	return true
}

// release gives n units back.
func (g *semaphore) release(n int64) {
	g.used.Add(-n)
	if g.waiting.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admitLocked()
}

// admitLocked lets those in whose turn has come.
func (g *semaphore) admitLocked() {
	for t := g.first; t != nil && g.take(t.n); t = g.first {
		g.removeLocked(t)
		close(t.ready)
	}
}
