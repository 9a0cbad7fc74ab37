package streamer

import (
	"context"
	"sync"
	"time"
)

// handlerContext is the context of a handler: it ends with the stream, and with its exchange; or it
// is that of the stream for all of them. Most handlers never wait on it, so that what that takes is
// made for those that do.
type handlerContext struct {
	stream context.Context

	mu     sync.Mutex
	ended  bool
	waited context.Context // nil: nobody has waited
	cancel context.CancelFunc
}

// end ends it; it may be called again.
func (c *handlerContext) end() {
	c.mu.Lock()
	c.ended = true
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
	if !c.ended {
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
		if c.ended {
			c.cancel()
		}
	}
	return c.waited.Done()
}

// current is what to ask.
func (c *handlerContext) current() (of context.Context, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waited != nil {
		return c.waited, false
	}
	return c.stream, c.ended
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
