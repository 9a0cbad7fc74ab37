package proxy

import (
	"errors"
	"io"

	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// introduce tells the far end, before a call, of connections that are gone.
func (c *caller) introduce() error {
	if how := c.place.ending(c.client.Key); how != none {
		if err := c.l.end(c.ctx, c.number, how); err != nil {
			return err
		}
		c.place = vacancy{number: c.number, owner: c.client.Key, told: true}
		c.mu.Lock()
		c.before++
		c.mu.Unlock()
	}
	c.l.tellEnds(c.ctx)
	return nil
}

// hasCalled reports whether the far end knows this client: it has an upstream connection only for
// clients that have called.
func (c *caller) hasCalled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun > 0
}

// leave gives the lane back. The far end learns of it in time, or at once if the connection broke:
// then a call may be in progress.
func (c *caller) leave(end fate) {
	owner := c.l.u.keeps(c.client.Key)
	c.l.mu.Lock()
	c.entered = principal.Key{}
	c.l.mu.Unlock()
	switch {
	case !c.hasCalled():
		c.l.leave(c.place)
	case end != endBroken:
		c.l.leave(vacancy{number: c.number, owner: owner})
	case c.l.end(c.p.ctx, c.number, endOf(owner)) == nil:
		c.l.leave(vacancy{number: c.number, owner: owner, told: true})
	}
}

// clientEnded passes on that the client has ended its direction while a call is in progress, or its
// connection. Without a call in progress there is nothing to wait for, and the connection ends; so
// it does once nothing comes for it any more: the client may be gone.
func (c *caller) clientEnded(err error) {
	if !errors.Is(err, io.EOF) {
		c.cancel()
		return
	}
	timer := c.p.cfg.Clock.NewTimer(c.p.cfg.Gather) // a client may close before its reply is accounted for
	defer timer.Stop()
	for {
		if c.isIdle() {
			c.ended = true
			return
		}
		select {
		case <-c.done:
			continue
		case <-timer.C():
			c.unwatch = c.out.WhenQuiet(c.p.cfg.Idle, c.cancel)
			_ = c.lane.Send(c.ctx, &streamer.Message{Head: line(shut)})
		case <-c.ctx.Done():
		}
		return
	}
}

// isClient reports whether the connection is the one of the lane that had so many before.
func (c *caller) isClient(before uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.before == before
}

// mayLeave reports whether no call is in progress of which the client has no reply: it may
// close the connection at any moment, or has.
func (c *caller) mayLeave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished == c.begun || c.replying || c.closing
}

// isIdle reports whether no call is in progress.
func (c *caller) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished == c.begun
}

// upstreamEnded notes that the upstream has closed; the writer handles it when no call is in
// progress.
func (c *caller) upstreamEnded(what controlMessage, octets []byte) {
	c.noteEnd(upstreamEnd{broken: what.kind == broken, calls: what.number, octets: octets})
}

func (c *caller) noteEnd(e upstreamEnd) {
	for {
		select {
		case c.over <- e:
			return
		default:
		}
		select {
		case <-c.over: // an older notice
		default:
		}
	}
}
