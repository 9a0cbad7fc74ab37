package service

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// collector has the garbage collector run earlier while much is in use: by default garbage may take
// as much memory again.
type collector struct {
	mu    sync.Mutex
	usual int // percent
	set   int // percent
	over  bool
}

const (
	// smallGarbage is how much garbage there may be in any case, in bytes: to collect it earlier
	// takes more time than its memory is worth.
	smallGarbage = 16 << 20
	// leastGarbage is how much there may be of what is in use, in percent.
	leastGarbage = 25
)

// Collect adapts the garbage collector after each of its runs to what is in use then, until stop is
// called. It leaves a GOGC that the user has set alone.
func Collect() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	c := &collector{usual: debug.SetGCPercent(100), set: 100}
	c.await()
	return c.stop
}

// collected is garbage from the start: its cleanup is when the next run has ended.
type collected struct{ by *collector }

func (c *collector) await() { runtime.AddCleanup(&collected{c}, (*collector).adapt, c) }

func (c *collector) adapt() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	if p := garbageBeside(live[0].Value.Uint64()); p != c.set {
		c.set = p
		debug.SetGCPercent(p)
	}
	c.await()
}

func (c *collector) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	debug.SetGCPercent(c.usual)
}

// garbageBeside is how much garbage there may be, in percent of so many bytes that are in use.
func garbageBeside(live uint64) int {
	return int(min(100, max(leastGarbage, 100*smallGarbage/max(live, 1))))
}
