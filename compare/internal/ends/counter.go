package ends

import (
	"errors"
	"sync/atomic"
	"time"
)

// arrivals counts one-way messages that have arrived.
type arrivals struct {
	n    atomic.Int64
	want atomic.Int64
	all  chan struct{}
}

func (c *arrivals) arrived() {
	if c.n.Add(1) == c.want.Load() {
		c.all <- struct{}{}
	}
}

var errLost = errors.New("messages that were sent did not arrive within a minute")

// expect prepares for more messages, and wait returns when they are there.
func (c *arrivals) expect(n int) {
	if c.all == nil {
		c.all = make(chan struct{}, 1)
	}
	c.want.Store(c.n.Load() + int64(n))
}

func (c *arrivals) wait() error {
	select {
	case <-c.all:
		return nil
	case <-time.After(time.Minute):
		return errLost
	}
}

// oneWay returns a contestant that sends messages in turn.
func (c *arrivals) oneWay(messages [][]byte, send func([]byte) error, flush, end func() error) *contestant {
	each := each(messages, send, end)
	return &contestant{close: end, carry: func(n int) error {
		c.expect(n)
		if err := each.carry(n); err != nil {
			return err
		}
		if err := flush(); err != nil {
			return err
		}
		return c.wait()
	}}
}
