package proxy

import (
	"context"
	"sync"
)

// order has the exchanges of a lane take their turns.
type order struct {
	mu      sync.Mutex
	next    uint64
	changed chan struct{}
}

// enter waits for the turn of an exchange; false: it has none (any more).
func (o *order) enter(ctx context.Context, number uint64) bool {
	for {
		o.mu.Lock()
		next, changed := o.next, o.changed
		o.mu.Unlock()
		if number <= next {
			return number == next
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// pass ends the turns of all exchanges up to a number.
func (o *order) pass(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if number < o.next {
		return
	}
	o.next = number + 1
	close(o.changed)
	o.changed = make(chan struct{})
}
