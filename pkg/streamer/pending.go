package streamer

import "context"

// Pending is a request that is queued and waits for its reply.
type Pending struct {
	s *Stream
	c *call
}

// Begin queues a request as a whole, and leaves the reply to [Pending.Reply], which must be called. Requests that one goroutine begins leave in that order, which
// [Lane.Call] in several goroutines does not promise. It waits and fails as Call does.
func (l *Lane) Begin(ctx context.Context, m *Message) (*Pending, error) {
	s := l.s
	c := &call{ready: make(chan struct{})}
	c.out = &outgoing{lane: l, call: c, claim: &claim{}}
	if err := l.enter(ctx, c.out, m, false); err != nil {
		return nil, err
	}
	if err := c.out.send(ctx, m); err != nil && !s.answered(c) {
		return nil, s.abandon(c, err, true)
	}
	return &Pending{s, c}, nil
}

// Open begins a request whose body comes as it is read: it returns when the first of it is queued, and a goroutine of the stream's reads the rest. Requests that one goroutine
// begins by Open and Begin leave in that order. It waits and fails as [Lane.Call] does.
func (l *Lane) Open(ctx context.Context, m *Message) (*Pending, error) {
	s := l.s
	c := &call{ready: make(chan struct{})}
	c.out = &outgoing{lane: l, call: c, claim: &claim{}, first: make(chan struct{})}
	if err := l.enter(ctx, c.out, m, true); err != nil {
		return nil, err
	}
	failed := make(chan error, 1)
	go func() {
		defer s.tasks.Done()
		if err := c.out.send(ctx, m); err != nil {
			failed <- s.abandon(c, err, false)
		}
	}()
	select {
	case <-c.out.first:
		return &Pending{s, c}, nil
	case err := <-failed:
		return nil, err
	}
}

// Reply waits for the first octets of the reply, and for its head, as [Lane.Call] does.
func (p *Pending) Reply(ctx context.Context) (*Message, error) { return p.s.reply(ctx, p.c) }
