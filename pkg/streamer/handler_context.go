package streamer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// handlerContext is the context of a handler: it ends with the stream, and with its exchange; or it
// is that of the stream for all of them. Most handlers never wait on it, so that what that takes is
// made for those that do.
type handlerContext struct {
	stream context.Context
	state  atomic.Uint32

	mu     sync.Mutex
	waited context.Context // nil: nobody has waited
	cancel context.CancelFunc
}

// The states of a handlerContext. Only the first changes to the second without the lock.
const (
	contextOpen   = iota // nobody has waited
	contextEnded         // nobody had waited when it ended
	contextWaited        // the context that somebody waits on tells
	contextDone          // it tells, and has ended, or is about to
)

// end ends it; it may be called again.
func (c *handlerContext) end() {
	if c.state.CompareAndSwap(contextOpen, contextEnded) {
		return
	}
	c.mu.Lock()
	if c.waited == nil {
		c.state.Store(contextEnded)
	} else {
		c.state.Store(contextDone)
	}
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// rest gives back what handlers waited on, when there are none.
func (c *handlerContext) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.CompareAndSwap(contextWaited, contextOpen) {
		c.waited, c.cancel = nil, nil
	}
}

// Deadline implements [context.Context].
func (c *handlerContext) Deadline() (time.Time, bool) { return c.stream.Deadline() }

// Done implements [context.Context].
func (c *handlerContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waited == nil {
		c.waited, c.cancel = context.WithCancel(c.stream)
		if !c.state.CompareAndSwap(contextOpen, contextWaited) {
			c.state.Store(contextDone)
			c.cancel()
		}
	}
	return c.waited.Done()
}

// current is what to ask.
func (c *handlerContext) current() (of context.Context, ended bool) {
	switch c.state.Load() {
	case contextOpen:
		return c.stream, false
	case contextEnded:
		return c.stream, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waited == nil { // it was given back
		return c.stream, c.state.Load() == contextEnded
	}
	return c.waited, false
}

// Err implements [context.Context].
func (c *handlerContext) Err() error {
	of, ended := c.current()
	if ended {
		return context.Canceled
	}
	return of.Err()
}

// Value implements [context.Context]. Contexts made of this one find by it what Done waits on.
func (c *handlerContext) Value(key any) any {
	of, _ := c.current()
	return of.Value(key)
}
