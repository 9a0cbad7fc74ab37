package proxy

import (
	"sync"

	"github.com/hhfr/hhfr/internal/sock"
)

// clientConns are the connections of clients that speak HTTP, or may.
type clientConns struct {
	mu        sync.Mutex
	all       map[*sock.Source]bool
	dismissed bool
}

func (c *clientConns) add(in *sock.Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*sock.Source]bool{}
	}
	c.all[in] = true
	if c.dismissed {
		in.Dismiss()
	}
}

// remove is for one that has ended, or belongs to somebody else now.
func (c *clientConns) remove(in *sock.Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, in)
}

// ask reports whether something was read of one that no call has taken: a part of a request.
func (c *clientConns) ask() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for in := range c.all {
		if in.Holds() {
			return true
		}
	}
	return false
}

// any reports whether there are any.
func (c *clientConns) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all) > 0
}

// abandon ends each, though something of a request was read: who reads it says why.
func (c *clientConns) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for in := range c.all {
		in.Abandon()
	}
}

// dismiss ends each as soon as it has nothing in progress.
func (c *clientConns) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dismissed = true
	for in := range c.all {
		in.Dismiss()
	}
}
