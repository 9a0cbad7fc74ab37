package proxy

import (
	"log/slog"
	"sync"
	"time"
)

// A proxy that is half of a pair, and never found the other half, says so with the first call after
// lonelyTime, or after lonelyCalls: the far half may start later.
const (
	lonelyTime  = 30 * time.Second
	lonelyCalls = 10
)

// alone knows whether there ever was a partner at an upstream.
type alone struct {
	log      *slog.Logger
	upstream string
	paired   string // what says that there is to be one; empty: nothing does
	since    time.Time

	mu    sync.Mutex
	calls int
	over  bool // there was one, or it was logged
}

// met notes that there is a partner.
func (a *alone) met() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

func (a *alone) called(why string, now time.Time) {
	if a.paired == "" || why != "no_partner" && why != "no_proxy" && why != "refused" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	if a.over || a.calls < lonelyCalls && now.Sub(a.since) < lonelyTime {
		return
	}
	a.over = true
	a.log.Warn("no partner was ever found there, though "+a.paired+" says that this is half of a pair",
		"upstream", a.upstream, "why", why, "hint", "--upstream names the address of the far proxy, "+
			"not of the server; the half that has the server for its upstream gets --no-offer")
}
