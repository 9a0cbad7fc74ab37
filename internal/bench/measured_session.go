package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// computing is what the near end computes for a message, by its number from 0, before it is sent. A
// first call is plain SOAP.
func (s *trial) computing(i int) time.Duration {
	if s.manner.hhfr() && (i > 0 || s.manner.mode != negotiate.FirstCall) {
		return s.cpu.Stream
	}
	return s.cpu.Plain + time.Duration(s.size)*s.cpu.Item
}

// offering is what it computes for an offer.
func (s *trial) offering() time.Duration {
	if s.manner.mode != negotiate.Explicit {
		return 0
	}
	return s.cpu.Plain
}

// tries is the maximum number of runs of a session that is not good, each time at half the speed:
// other work on the machine may have interfered.
const tries = 3

// lived runs a session, again if need be.
func (s *trial) lived(ctx context.Context) (c Cell, err error) {
	for range tries {
		began, used := time.Now(), clock.Processor()
		if c, err = s.live(ctx, s.clock()); ctx.Err() != nil {
			return c, context.Cause(ctx)
		} else if err != nil {
			return c, err
		}
		c.Speed, c.CPU, c.Compute = s.speed, -1, -1
		if used >= 0 {
			computed := clock.Processor() - used
			c.CPU, c.Compute = float64(computed)/float64(time.Since(began)), millis(computed)
		}
		if c.Good() {
			break
		}
		s.speed /= 2
	}
	return c, nil
}

// live opens the link, sends the messages, and counts.
func (s *trial) live(ctx context.Context, ticks clock.Clock) (c Cell, err error) {
	messages, err := s.messages()
	if err != nil {
		return c, err
	}
	ends := newSockets(ticks)
	defer ends.close()
	srv, err := s.server(ctx, ticks, ends)
	if err != nil {
		return c, err
	}
	defer func() { _ = srv.close() }()
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	near := &nearEnd{trial: s, clock: ticks, server: srv, store: store}
	if s.manner.resumed {
		near.tickets = tls.NewLRUClientSessionCache(0)
	}
	if s.manner.met() {
		first, before := *near, *s
		before.manner = s.manner.first()
		first.trial = &before
		if _, err := first.over(ctx, ends, messages[:1]); err != nil {
			return c, fmt.Errorf("the session before: %w", err)
		}
	}
	return near.over(ctx, ends, messages)
}

// over sends messages over a link of their own.
func (c *nearEnd) over(ctx context.Context, ends *sockets, messages [][]byte) (cell Cell, err error) {
	s := c.trial
	l, err := c.lines(ends)
	if err != nil {
		return cell, err
	}
	defer func() { _ = l.Close() }()
	began := c.clock.Now()
	if err := c.clock.Sleep(ctx, s.offering()); err != nil {
		return cell, err
	}
	t, err := c.open(ctx, l)
	if err != nil {
		return cell, err
	}
	defer t.close()
	begin, begun := t.begin, 0
	t.begin = func(ctx context.Context, message []byte) (func() ([]byte, error), error) {
		begun++
		if err := c.clock.Sleep(ctx, s.computing(begun-1)); err != nil {
			return nil, err
		}
		return begin(ctx, message)
	}
	setup, opened := c.clock.Since(began), l.stats()
	alone := s.manner.alone(len(messages))
	if err := s.inTurn(ctx, t, messages[:alone]); err != nil {
		return cell, err
	}
	before := l.stats()
	if s.manner.queued {
		err = s.queue(ctx, t, messages[alone:])
	}
	if err != nil {
		return cell, err
	}
	took, st := c.clock.Since(began), l.stats()
	cell = Cell{
		Service: s.service, Way: s.way, Size: s.size, N: s.n, Millis: millis(took), Setup: millis(setup),
		Sent: st.up.Wire, Received: st.down.Wire, CPU: -1, Lossy: s.profile != s.profile.Reliable(),
	}
	if s.peer == nil {
		cell.Expected, cell.Least = millis(s.expected(before, st)), millis(s.manner.least(s.profile, opened, st))
	}
	return cell, nil
}

// expected is the time of the session's bytes, computing and round trips, from what the link
// carried before the first message and in all.
func (s *trial) expected(before, all directions) time.Duration {
	took := time.Duration(s.manner.rounds(s.n))*s.profile.RTT + s.offering()
	alone := s.manner.alone(s.n)
	for i := range alone {
		took += s.computing(i)
	}
	if !s.manner.queued {
		return took + all.up.Busy + all.down.Busy
	}
	took += before.up.Busy + before.down.Busy
	travel, queued := s.bothWays(all.since(before)), time.Duration(s.n-alone)
	if queued == 0 {
		return took + travel
	}
	// a message is computed while the one before travels
	return took + s.computing(alone) + travel + (queued-1)*max(s.computing(alone)-travel/queued, 0)
}

// bothWays is the time that the link takes for messages that do not wait for each other: both
// directions at once. Only the first request or the last reply is alone, since nothing of it is
// there before all of its packets are.
func (s *trial) bothWays(d directions) time.Duration {
	less := d.up
	if d.down.Busy < less.Busy {
		less = d.down
	}
	n := max(s.n-s.manner.alone(s.n), 1)
	return max(d.up.Busy, d.down.Busy) + min(less.Busy, s.profile.FullPackets(less.Octets/int64(n)))
}

// inTurn sends messages, each after the reply to the one before.
func (s *trial) inTurn(ctx context.Context, t *talk, messages [][]byte) error {
	for _, m := range messages {
		reply, err := t.begin(ctx, m)
		if err != nil {
			return err
		}
		body, err := reply()
		if err != nil {
			return err
		}
		if err := s.checkReply(m, body); err != nil {
			return err
		}
	}
	return nil
}

// queue sends messages one after the other and reads the replies as they arrive.
func (s *trial) queue(ctx context.Context, t *talk, messages [][]byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := make(chan func() ([]byte, error), len(messages))
	go func() {
		defer close(begun)
		for _, m := range messages {
			reply, err := t.begin(ctx, m)
			if err != nil {
				cancel(err)
				return
			}
			begun <- reply
		}
	}()
	var failed error
	for i := 0; ; i++ {
		reply, more := <-begun
		if !more {
			break
		}
		body, err := reply()
		if err == nil {
			err = s.checkReply(messages[i], body)
		}
		if err != nil && failed == nil {
			failed = err
			cancel(err)
		}
	}
	if failed == nil && ctx.Err() != nil {
		failed = context.Cause(ctx)
	}
	return failed
}

// lines opens what the session goes over: the link, or the network to a peer.
func (c *nearEnd) lines(ends *sockets) (lines, error) {
	if c.trial.peer != nil {
		return &network{secure: c.trial.manner.tls}, nil
	}
	return c.trial.open(c.clock, ends)
}
