package meter

import (
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Call is a call under way. It is part of what its owner keeps of the call, and begins with
// [Upstream.Begin] or [Plain.Begin]. Its methods may be called concurrently.
type Call struct {
	upstream  *Upstream
	plain     *Plain // nil: it goes over a stream
	operation atomic.Pointer[operation]
	began     time.Time
	fault     atomic.Bool
	over      atomic.Bool
	record    *Record // nil: nobody wants one
}

// Begin counts a call over a stream that begins. Its operation is not known yet.
func (u *Upstream) Begin(c *Call, now time.Time) {
	c.upstream, c.began = u, now
	c.operation.Store(&u.role.operations.none)
	u.inProgress.Add(1)
	if u.role.each != nil {
		c.record = &Record{role: u.role.name, upstream: u.name, began: now, operation: NoOperation}
	}
}

// Begin counts a call without a stream that begins. Its operation is not known yet. Its bytes are
// those of [Plain]; what the call is told of them is for its record only.
func (p *Plain) Begin(c *Call, now time.Time) {
	c.plain = p
	p.upstream.Begin(c, now)
	c.record.change(func(r *Record) { r.reason = p.reason })
}

// Name gives the operation of the call; an empty one is [NoOperation]. The name is not kept.
func (c *Call) Name(operation []byte) {
	c.operation.Store(c.upstream.role.operations.of(operation))
	if len(operation) > 0 {
		c.record.change(func(r *Record) { r.operation = string(operation[:min(len(operation), maxName)]) })
	}
}

// Wire is where the frames of the call count.
func (c *Call) Wire() *streamer.WireBytes {
	all := &c.operation.Load().stream.wire
	if c.record == nil {
		return all
	}
	c.record.wire.Also(all)
	return &c.record.wire
}

// Request counts bytes of the request, as HTTP has them.
func (c *Call) Request(n int) {
	if c.record != nil {
		c.record.request.Add(int64(n))
	}
	if c.plain != nil {
		return
	}
	c.upstream.load.request.Add(int64(n))
	c.operation.Load().stream.request.Add(int64(n))
}

// Reply counts bytes of replies, as HTTP has them.
func (c *Call) Reply(n int) {
	if c.record != nil {
		c.record.reply.Add(int64(n))
	}
	if c.plain != nil {
		return
	}
	c.upstream.load.reply.Add(int64(n))
	c.operation.Load().stream.reply.Add(int64(n))
}

// Began is when the call began.
func (c *Call) Began() time.Time { return c.began }

// Added counts time in which the message was in this process, and waited for nobody else.
func (c *Call) Added(d time.Duration) {
	if c.record != nil {
		c.record.added.Add(int64(d))
	}
	c.upstream.load.added.Add(int64(d))
	c.operation.Load().stream.added.Add(int64(d))
}

// Fault notes that the reply is the SOAP fault that begins so.
func (c *Call) Fault(start []byte) {
	c.fault.Store(true)
	c.record.change(func(r *Record) { r.fault = string(soap.FaultCodeIn(start)) })
}

// Done counts the end of the call, once. ok: its reply has arrived whole.
func (c *Call) Done(now time.Time, ok bool) {
	if c.upstream == nil || c.over.Swap(true) {
		return
	}
	took := now.Sub(c.began)
	o := c.operation.Load()
	all, own := &c.upstream.load, &o.stream
	if c.plain != nil {
		all, own = &c.plain.load, &o.plain
	}
	for _, l := range [...]*load{all, &own.load} {
		l.calls.Add(1)
		l.took.Add(int64(took))
		if !ok {
			l.failed.Add(1)
		}
		if c.fault.Load() {
			l.faults.Add(1)
		}
	}
	own.times.add(took)
	c.upstream.inProgress.Add(-1)
	if c.record != nil {
		c.record.change(func(r *Record) { r.ok, r.took, r.isFault = ok, took, c.fault.Load() })
		c.upstream.role.each(c.record)
	}
}

// Drop forgets a call, such as one that goes on plainly, where it is counted in other ways.
func (c *Call) Drop() {
	if c.upstream != nil && !c.over.Swap(true) {
		c.upstream.inProgress.Add(-1)
	}
}
