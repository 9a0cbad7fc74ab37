package meter

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// Record is what is told of one call, to who wants it of each ([Meter.Each]).
type Record struct {
	role, upstream, reason string
	began                  time.Time
	request, reply, added  atomic.Int64
	wire                   streamer.WireBytes

	mu        sync.Mutex
	client    string
	operation string
	status    int
	fault     string
	isFault   bool
	ok        bool
	took      time.Duration
}

// Told is what a record tells.
type Told struct {
	Began     time.Time
	Role      string
	Client    string
	Upstream  string
	Operation string // NoOperation: it is not known
	Reason    string // why the call went plainly; empty: it went over a stream
	Status    int    // of the final reply that the client got; 0: it got none, or it is not known
	// IsFault: the reply is a fault. Fault is its code without prefix; empty: none was found.
	IsFault        bool
	Fault          string
	OK             bool          // the reply is whole
	Request, Reply int64         // bytes, as HTTP has them
	Sent, Received int64         // bytes of data frames on the link
	Took, Added    time.Duration // Added: in this process; 0: it is not known
}

// Each has f called with each call when it is over, from now on, concurrently. It is called before
// the first call. Without it records cost nothing.
func (m *Meter) Each(f func(*Record)) { m.Near.each, m.Far.each, m.Serve.each = f, f, f }

// IsSettled reports whether all that [Record.Told] returns is final: a reply may leave a while
// after its call is over.
func (r *Record) IsSettled() bool { return r.reason != "" || r.role == "near" || r.wire.Over() }

// Told returns what is known now.
func (r *Record) Told() Told {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Told{
		Began: r.began, Role: r.role, Client: r.client, Upstream: r.upstream, Operation: r.operation, Reason: r.reason,
		Status: r.status, Fault: r.fault, IsFault: r.isFault, OK: r.ok, Request: r.request.Load(),
		Reply: r.reply.Load(), Sent: r.wire.Sent.Load(), Received: r.wire.Received.Load(), Took: r.took,
		Added: time.Duration(r.added.Load()),
	}
}

// change changes something of what is told; r may be nil.
func (r *Record) change(f func(r *Record)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}

// From notes who called. Nothing is kept of the address if nobody wants a record.
func (c *Call) From(addr net.Addr) {
	c.record.change(func(r *Record) { r.client = addr.String() })
}

// Status notes that of the final reply.
func (c *Call) Status(status int) {
	c.record.change(func(r *Record) { r.status = status })
}
