package proxy

import (
	"sync"
	"sync/atomic"
	"time"
)

// rawConns are the connections that are forwarded without a look at what they carry.
type rawConns struct {
	mu  sync.Mutex
	all map[*rawConn]bool
}

// rawConn knows when something passed on one.
type rawConn struct {
	asked   atomic.Bool  // the client has sent what nothing came back for
	replied atomic.Int64 // when something came back, in nanoseconds of Unix time
}

// begin adds one, until end is called.
func (r *rawConns) begin() (c *rawConn, end func()) {
	c = &rawConn{}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[*rawConn]bool{}
	}
	r.all[c] = true
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.all, c)
	}
}

// areBusy reports whether one of them is.
func (r *rawConns) areBusy(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.all {
		if c.isBusy(now) {
			return true
		}
	}
	return false
}

// isBusy reports whether a call seems to be in progress: the client waits for what it has asked
// for, or what comes for it has not been still for replyGap.
func (c *rawConn) isBusy(now time.Time) bool {
	return c.asked.Load() || now.Sub(time.Unix(0, c.replied.Load())) < replyGap
}

func (c *rawConn) ask() { c.asked.Store(true) }

func (c *rawConn) reply(now time.Time) {
	c.replied.Store(now.UnixNano())
	c.asked.Store(false)
}
