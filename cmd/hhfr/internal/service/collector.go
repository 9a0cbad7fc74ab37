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
	least int // percent of what is in use that garbage may take; 0: the runtime's rule stays
	rest  time.Duration

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
	// mostGarbage is how much there may be beside little that is in use, in percent. The runtime
	// lets 4 MB for each 100 of it be used before its first run.
	mostGarbage = 400
	// usualGarbage is how much there may be beside much that is in use, in percent, and
	// frugalGarbage the same of a process that is to be frugal.
	usualGarbage, frugalGarbage = 100, 25
	// rest is the time after a run of the collector, without a further one, until memory is given
	// back: connections release their buffers after half a minute.
	rest = 40 * time.Second
	// worthwhile is how much must have been allocated meanwhile, in bytes.
	worthwhile = 1 << 20
)

// Collect gives what is free back to the kernel when the process rests, until stop is called: the
// runtime alone does so by and by, and only after runs of its collector. After each run it also
// adapts the collector to what is in use then: little has 16 MB of garbage beside it, since to
// collect that earlier takes a seventh of the time of a busy server; much has as much garbage
// again, or, frugal, a quarter. A GOGC that the user has set is left alone.
func Collect(frugal bool) (stop func()) {
	least := usualGarbage
	switch {
	case os.Getenv("GOGC") != "":
		least = 0
	case frugal:
		least = frugalGarbage
	}
	return collect(least, rest).stop
}

func collect(least int, rest time.Duration) *collector {
	c := &collector{least: least, rest: rest}
	if least > 0 {
		c.usual, c.set = debug.SetGCPercent(usualGarbage), usualGarbage
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
	if c.least > 0 {
		if p := garbageBeside(measured("/gc/heap/live:bytes"), c.least); p != c.set {
			c.set = p
			debug.SetGCPercent(p)
		}
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
	if c.least > 0 {
		debug.SetGCPercent(c.usual)
	}
}

func measured(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// garbageBeside is how much garbage there may be, in percent of so many bytes that are in use; not
// less than least.
func garbageBeside(live uint64, least int) int {
	return int(min(mostGarbage, max(uint64(least), 100*smallGarbage/max(live, 1))))
}
