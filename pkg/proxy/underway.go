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

// load counts the octets of calls that wait for their replies, over all connections of a link. They
// take of the room that the other end of the stream has for all of it, and without bound they would
// take it all: some clients whose server is slow, or who do not send on, would stop all others. The
// zero value counts none.
type load struct {
	mu sync.Mutex
	n  int64
}

// take counts n octets more, unless they would be more than max then.
func (l *load) take(n, max int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n+n > max {
		return false
	}
	l.n += n
	return true
}

func (l *load) give(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n -= n
}
