package proxy

import (
	"context"
	"sync"
)

// order puts the exchanges of a lane in order.
type order struct {
	mu      sync.Mutex
	changed sync.Cond
	next    uint64
	over    bool // nobody waits any more
}

func newOrder(first uint64) *order {
	o := &order{next: first}
	o.changed.L = &o.mu
	return o
}

// block has the first exchange wait until the one before it passes.
func (o *order) block() { o.next-- }

// enter waits for the turn of an exchange; false: it has none (any more).
func (o *order) enter(ctx context.Context, number uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if number > o.next {
		defer context.AfterFunc(ctx, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.changed.Broadcast()
		})()
	}
	for number > o.next && !o.over && ctx.Err() == nil {
		o.changed.Wait()
	}
	return number == o.next
}

// isTurn reports whether it is the turn of an exchange.
func (o *order) isTurn(number uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return number == o.next && !o.over
}

// pass ends the turns of all exchanges up to a number.
func (o *order) pass(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = max(o.next, number+1)
	o.changed.Broadcast()
}

// end ends all waiting.
func (o *order) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.changed.Broadcast()
}

// isOver reports whether end was called.
func (o *order) isOver() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over
}
