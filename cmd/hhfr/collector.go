package main

import (
	"os"
	"runtime/debug"
	"sync"
)

// collector has the garbage collector run earlier while somebody holds much: by default garbage may
// take as much memory again. It leaves a GOGC that the user has set alone.
type collector struct {
	mu    sync.Mutex
	holds int
	usual int // percent
}

// early is how much garbage there may be meanwhile, in percent of what is in use.
const early = 25

// hurry is called by who begins to hold much; it calls relax in the end.
func (c *collector) hurry() (relax func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds++; c.holds == 1 {
		c.usual = debug.SetGCPercent(early)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.holds--; c.holds == 0 {
			debug.SetGCPercent(c.usual)
		}
	}
}
