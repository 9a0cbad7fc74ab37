package streamer

import (
	"slices"
	"sync"
)

// waiter is a place in a line; ready is closed when its turn has come.
type waiter struct {
	n     int64
	ready chan struct{}
}

// semaphore lets at most max units in, first come, first served. One that wants more than max is
// let in alone.
type semaphore struct {
	mu   sync.Mutex
	max  int64
	used int64
	line []*waiter
}

// widen sets the bound anew.
func (g *semaphore) widen(most int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.max = most
	g.admit()
}

// isShut reports whether it lets nobody in.
func (g *semaphore) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.max == 0
}

// holds is how many units are taken.
func (g *semaphore) holds() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used
}

// enter takes n units; a waiter is returned if it must be waited for, and must be waited for or
// left.
func (g *semaphore) enter(n int64) *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.line) == 0 && g.fits(n) {
		g.used += n
		return nil
	}
	t := &waiter{n: n, ready: make(chan struct{})}
	g.line = append(g.line, t)
	return t
}

func (g *semaphore) fits(n int64) bool { return g.used == 0 || g.used+n <= g.max }

// leave gives up a waiter, whether its turn had come or not.
func (g *semaphore) leave(t *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.line, t); i >= 0 {
		g.line = slices.Delete(g.line, i, i+1)
	} else {
		g.used -= t.n
	}
	g.admit()
}

// release gives n units back.
func (g *semaphore) release(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= n
	g.admit()
}

func (g *semaphore) admit() {
	for len(g.line) > 0 && g.fits(g.line[0].n) {
		t := g.line[0]
		g.line = slices.Delete(g.line, 0, 1)
		g.used += t.n
		close(t.ready)
	}
}
