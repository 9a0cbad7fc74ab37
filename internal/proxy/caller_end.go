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
		c.progress.follow()
	}
	c.l.tellEnds(c.ctx)
	return nil
}

// leave gives the lane back. The far end learns of it in time, or at once if the connection broke:
// then a call may be in progress.
func (c *caller) leave(end fate) {
	owner := c.l.u.keeps(c.client.Key)
	c.l.mu.Lock()
	c.entered = principal.Key{}
	c.l.mu.Unlock()
	switch {
	case c.progress.calls() == 0:
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
		if c.progress.open() == 0 {
			c.readEnd.inOrder = true
			return
		}
		select {
		case <-c.done:
			continue
		case <-timer.C():
			c.readEnd.unwatch = c.out.WhenQuiet(c.p.cfg.Idle, c.cancel)
			_ = c.lane.Send(c.ctx, &streamer.Message{Head: line(shut)})
		case <-c.ctx.Done():
		}
		return
	}
}
