package service

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// collector sees to the memory of a process after each run of the garbage collector.
type collector struct {
	frugal bool
	rest   time.Duration

	mu     sync.Mutex
	usual  int // percent
	set    int // percent
	over   bool
	timer  *time.Timer // until memory is given back; nil: nothing was collected yet
	before uint64      // what had been allocated when it was given back last, in bytes
}

const (
	// smallGarbage is how much garbage there may be in any case, in bytes: to collect it earlier
	// takes more time than its memory is worth.
	smallGarbage = 16 << 20
	// leastGarbage is how much there may be of what is in use, in percent.
	leastGarbage = 25
	// rest is the time after a run of the collector, without a further one, until memory is given
	// back: connections release their buffers after half a minute.
	rest = 40 * time.Second
	// worthwhile is how much must have been allocated meanwhile, in bytes.
	worthwhile = 1 << 20
)

// Collect gives what is free back to the kernel when the process rests, until stop is called: the
// runtime alone does so by and by, and only after runs of its collector. frugal: it also adapts
// the collector, after each run, to what is in use then, and leaves a GOGC that the user has set
// alone; by default garbage may take as much memory again.
func Collect(frugal bool) (stop func()) {
	return collect(frugal && os.Getenv("GOGC") == "", rest).stop
}

func collect(frugal bool, rest time.Duration) *collector {
	c := &collector{frugal: frugal, rest: rest}
	if frugal {
		c.usual, c.set = debug.SetGCPercent(100), 100
	}
	c.await()
	return c
}

// collected is garbage from the start: its cleanup is when the next run has ended.
type collected struct{ by *collector }

func (c *collector) await() { runtime.AddCleanup(&collected{c}, (*collector).adapt, c) }

func (c *collector) adapt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	if p := garbageBeside(measured("/gc/heap/live:bytes")); c.frugal && p != c.set {
		c.set = p
		debug.SetGCPercent(p)
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(c.rest, c.giveBack)
	} else {
		c.timer.Reset(c.rest)
	}
	c.await()
}

// giveBack is not worth its time where little was allocated; its own run of the collector is
// followed by nothing therefore.
func (c *collector) giveBack() {
	c.mu.Lock()
	all := measured("/gc/heap/allocs:bytes")
	rests := !c.over && all-c.before >= worthwhile
	if rests {
		c.before = all
	}
	c.mu.Unlock()
	if rests {
		debug.FreeOSMemory()
	}
}

func (c *collector) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.frugal {
		debug.SetGCPercent(c.usual)
	}
}

func measured(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// garbageBeside is how much garbage there may be, in percent of so many bytes that are in use.
func garbageBeside(live uint64) int {
	return int(min(100, max(leastGarbage, 100*smallGarbage/max(live, 1))))
}
