package proxy

import (
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// completeNow completes the only call of the connection in the goroutine of the stream's reader,
// which has its reply; it waits for nothing. What it cannot do is left to the writer. It is false
// if that is to be woken.
func (c *caller) completeNow() bool {
	if !c.completing.TryLock() {
		return false // the writer is at work
	}
	defer c.completing.Unlock()
	if c.left || !c.hasOneCall() {
		return false
	}
	select {
	case c.taken = <-c.calls: // nil: the reader has ended, and the writer has the call
	default:
	}
	x := c.taken
	if x == nil || x.err != nil || !x.pending.Ready() {
		return false // a writer that was at work completed the call this is for, and x is the next one
	}
	m, err := x.pending.Next(c.ctx)
	if x.reply, x.failure = m, err; err != nil || m.Interim {
		return false
	}
	what, err := parse(m.Head)
	if err != nil || what.kind != whole || what.coding != nil {
		return false
	}
	f, err := http1.ReplyFraming(&what.head, x.method)
	if err != nil || f.Kind == http1.Tunnel {
		return false
	}
	x.seen.since = c.p.cfg.Clock.Now()
	x.out.to = &c.eager
	x.decide()
	x.end, x.reply, x.delivered = c.reply(x, m, &what, f), nil, true
	closeBody(m.Body)
	if x.end != goOn || len(c.eager.Rest) > 0 {
		return false
	}
	c.taken = nil
	c.completed(x)
	return true
}

// hasOneCall reports whether exactly one call is in progress.
func (c *caller) hasOneCall() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun == c.finished+1
}

// next waits for the next reply.
func (c *caller) next(x *pendingCall) (*streamer.Message, error) {
	m, err := x.reply, x.failure
	if x.reply, x.failure = nil, nil; m != nil || err != nil {
		return m, err
	}
	return x.pending.Next(c.ctx)
}

// deliverRest writes what the client's connection did not take at once of a reply that completeNow
// delivered.
func (c *caller) deliverRest(x *pendingCall) fate {
	rest := c.eager.Rest
	c.eager.Rest = nil
	if _, err := c.out.Write(rest); err != nil {
		return endBroken
	}
	return x.end
}

// stopNow has completeNow do nothing any more.
func (c *caller) stopNow() {
	c.completing.Lock()
	defer c.completing.Unlock()
	c.left = true
	x := c.taken
	switch {
	case x == nil:
		return
	case x.reply != nil:
		closeBody(x.reply.Body)
	case !x.delivered && x.failure == nil:
		_ = c.giveUp(x)
	}
	x.ended(false)
}
