package proxy

import (
	"context"
	"sync"
)

// underway counts the calls that have no whole reply yet. The zero value counts none.
type underway struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when there are none; nil: nobody waits
}

func (u *underway) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n++
}

func (u *underway) end(calls int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n -= calls; u.n == 0 && u.none != nil {
		close(u.none)
		u.none = nil
	}
}

// wait waits until there are none, or ctx is done.
func (u *underway) wait(ctx context.Context) {
	u.mu.Lock()
	if u.n == 0 {
		u.mu.Unlock()
		return
	}
	if u.none == nil {
		u.none = make(chan struct{})
	}
	none := u.none
	u.mu.Unlock()
	await(ctx, none)
}
