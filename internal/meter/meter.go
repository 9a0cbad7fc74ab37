// Package meter counts what a process carries: by upstream, and by operation. Whoever carries
// something has a [Role] and counts there; whoever shows it takes a [Snapshot]. Counting a call
// costs a few atomic additions and allocates nothing.
package meter

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// maxUpstreams bounds the upstreams that a role has counters for. Further ones share those of
// [Other].
const maxUpstreams = 1000

// Other is the upstream, or the operation, of what has no counters of its own.
const Other = "other"

// NoOperation is the operation of calls that show none: their bodies are no SOAP, or begin with
// more than was looked at.
const NoOperation = "-"

// Meter has the counters of a process.
type Meter struct {
	// Near carries calls of clients over streams to an upstream, Far those of streams to one; Serve
	// answers them itself.
	Near, Far, Serve *Role

	began time.Time
}

// New returns a meter without counts, which begins now.
func New(now time.Time) *Meter {
	return &Meter{Near: newRole("near"), Far: newRole("far"), Serve: newRole("serve"), began: now}
}

// Role is what a process does as one end of streams.
type Role struct {
	name       string
	operations operations
	each       func(*Record) // nil: nobody wants records

	mu        sync.Mutex
	upstreams map[string]*Upstream
}

func newRole(name string) *Role {
	r := &Role{name: name, upstreams: map[string]*Upstream{}}
	r.operations.init()
	return r
}

// Upstream returns the counters of an upstream, always the same for a name.
func (r *Role) Upstream(name string) *Upstream {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u := r.upstreams[name]; u != nil {
		return u
	}
	if len(r.upstreams) >= maxUpstreams {
		name = Other
	}
	u := r.upstreams[name]
	if u == nil {
		u = &Upstream{role: r, name: name, plain: map[string]*Plain{}, failed: map[string]int64{}}
		r.upstreams[name] = u
	}
	return u
}

// load are the counters of calls that go one way, of an upstream or an operation.
type load struct {
	calls, failed, faults atomic.Int64
	request, reply        atomic.Int64 // bytes of HTTP
	wire                  streamer.WireBytes
	took, added           atomic.Int64 // nanoseconds
}

// timedLoad has the times of its calls as well.
type timedLoad struct {
	load
	times times
}

// Plain are the counters of what did not go over a stream, for one reason: its connections, if they
// are counted, their bytes, and the calls that could be told apart in them.
type Plain struct {
	upstream    *Upstream
	reason      string
	connections atomic.Int64
	load        load
}

// Connection counts a connection.
func (p *Plain) Connection() { p.connections.Add(1) }

// Request counts bytes from the client.
func (p *Plain) Request(n int) { p.load.request.Add(int64(n)) }

// Reply counts bytes to the client.
func (p *Plain) Reply(n int) { p.load.reply.Add(int64(n)) }
