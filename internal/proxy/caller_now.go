package proxy

import (
	"sync"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
)

// quick is what the goroutine of the stream's reader needs to complete calls.
type quick struct {
	now        func() bool      // completeNow
	completing sync.Mutex       // held by who completes calls: the writer, or the stream's reader
	taken      *pendingCall     // that the stream's reader took, and left to the writer; under completing
	eager      sock.EagerWriter // to the client, for the stream's reader; likewise
	left       bool             // the stream's reader is to take no further call; likewise
}

// completeNow completes the only call of the connection in the goroutine of the stream's reader,
// which has its reply; it waits for nothing. What it cannot do is left to the writer. It is false
// if that is to be woken.
func (c *caller) completeNow() bool {
	if !c.quick.completing.TryLock() {
		return false // the writer is at work
	}
	defer c.quick.completing.Unlock()
	if c.quick.left || c.progress.open() != 1 {
		return false
	}
	select {
	case c.quick.taken = <-c.calls: // nil: the reader has ended, and the writer has the call
	default:
	}
	x := c.quick.taken
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
	x.out.to = &c.quick.eager
	x.decide()
	x.end, x.reply, x.delivered = c.reply(x, m, &what, f), nil, true
	closeBody(m.Body)
	if x.end != goOn || len(c.quick.eager.Rest) > 0 {
		return false
	}
	c.quick.taken = nil
	c.completed(x)
	return true
}

// deliverRest writes what the client's connection did not take at once of a reply that completeNow
// delivered.
func (c *caller) deliverRest(x *pendingCall) fate {
	rest := c.quick.eager.Rest
	c.quick.eager.Rest = nil
	if _, err := c.out.Write(rest); err != nil {
		return endBroken
	}
	return x.end
}

// stopNow has completeNow do nothing any more.
func (c *caller) stopNow() {
	c.quick.completing.Lock()
	defer c.quick.completing.Unlock()
	c.quick.left = true
	x := c.quick.taken
	switch {
	case x == nil:
		return
	case x.reply != nil:
		closeBody(x.reply.Body)
	case !x.delivered && x.failure == nil:
		_ = x.giveUp(c.ctx)
	}
	x.ended(false)
}
