package meter

import (
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// Call is a call under way. It is part of what its owner keeps of the call, and begins with
// [Upstream.Begin]. Its methods may be called concurrently.
type Call struct {
	upstream  *Upstream
	operation atomic.Pointer[load]
	began     time.Time
	over      atomic.Bool
}

// Begin counts a call that begins. Its operation is not known yet.
func (u *Upstream) Begin(c *Call, now time.Time) {
	c.upstream, c.began = u, now
	c.operation.Store(&u.role.operations.none)
	u.inProgress.Add(1)
}

// Name gives the operation of the call; an empty one is [NoOperation]. The name is not kept.
func (c *Call) Name(operation []byte) {
	c.operation.Store(c.upstream.role.operations.of(operation))
}

// Wire is where the frames of the call count.
func (c *Call) Wire() *streamer.WireBytes { return &c.operation.Load().wire }

// Request counts bytes of the request, as HTTP has them.
func (c *Call) Request(n int) {
	c.upstream.load.request.Add(int64(n))
	c.operation.Load().request.Add(int64(n))
}

// Reply counts bytes of replies, as HTTP has them.
func (c *Call) Reply(n int) {
	c.upstream.load.reply.Add(int64(n))
	c.operation.Load().reply.Add(int64(n))
}

// Began is when the call began.
func (c *Call) Began() time.Time { return c.began }

// Added counts time in which the message was in this process, and waited for nobody else.
func (c *Call) Added(d time.Duration) {
	c.upstream.load.added.Add(int64(d))
	c.operation.Load().added.Add(int64(d))
}

// Done counts the end of the call, once. ok: its reply has arrived whole.
func (c *Call) Done(now time.Time, ok bool) {
	if c.upstream == nil || c.over.Swap(true) {
		return
	}
	took := int64(now.Sub(c.began))
	for _, l := range [...]*load{&c.upstream.load, c.operation.Load()} {
		l.calls.Add(1)
		l.took.Add(took)
		if !ok {
			l.failed.Add(1)
		}
	}
	c.upstream.inProgress.Add(-1)
}

// Drop forgets a call, such as one that goes on plainly, where it is counted in other ways.
func (c *Call) Drop() {
	if c.upstream != nil && !c.over.Swap(true) {
		c.upstream.inProgress.Add(-1)
	}
}
