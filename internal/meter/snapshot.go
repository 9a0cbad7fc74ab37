package meter

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Snapshot is what a meter has counted at one time. It is also the JSON of a status.
type Snapshot struct {
	Version    int                `json:"version"`    // 1
	Began      time.Time          `json:"began"`      // when the process began to count
	Now        time.Time          `json:"now"`        // when this was counted
	Upstreams  []*UpstreamCounts  `json:"upstreams"`  // in the order of their names
	Operations []*OperationCounts `json:"operations"` // the busiest first; those of none and all others last
}

// CallCounts are those of calls over streams. Bytes are those of HTTP at this end (requests and
// replies), and those of frames on the link (sent and received).
type CallCounts struct {
	Role          string  `json:"role"`           // near, far or serve
	Calls         int64   `json:"calls"`          // that have ended
	Failed        int64   `json:"failed"`         // of them, without a whole reply
	Faults        int64   `json:"faults"`         // of them, with a SOAP fault for a reply
	RequestBytes  int64   `json:"request_bytes"`  // as HTTP has them at this end
	ReplyBytes    int64   `json:"reply_bytes"`    // likewise
	SentBytes     int64   `json:"sent_bytes"`     // of frames on the link
	ReceivedBytes int64   `json:"received_bytes"` // likewise
	Seconds       float64 `json:"seconds"`        // sum over the calls, from the request to the end of the reply
	AddedSeconds  float64 `json:"added_seconds"`  // of them, those spent in this process
	Ratio         float64 `json:"ratio"`          // bytes on the link by bytes of HTTP; 0: nothing was carried
}

// UpstreamCounts are those of an upstream.
type UpstreamCounts struct {
	Upstream string `json:"upstream"` // URL of the upstream; path of a service of serve
	CallCounts
	InProgress     int64            `json:"in_progress"`               // over streams or not
	Plain          []PlainCounts    `json:"plain,omitempty"`           // what went without a stream, by reason
	Streams        int              `json:"streams"`                   // open now
	Opened         int64            `json:"streams_opened"`            // since the process began to count
	Failures       map[string]int64 `json:"stream_failures,omitempty"` // attempts to open one, by reason
	Reason         string           `json:"reason,omitempty"`          // why the last attempt failed
	Why            string           `json:"why,omitempty"`             // more about it, for people
	Changed        time.Time        `json:"changed,omitzero"`          // when that was
	Gone           bool             `json:"gone,omitempty"`            // nothing leads to it any more
	ShapesSent     int64            `json:"shapes_sent"`               // on streams
	ShapesReceived int64            `json:"shapes_received"`           // likewise
	CreditWaits    int64            `json:"credit_waits"`              // of messages, for credit of the peer
	Resent         int64            `json:"resent_packets"`            // packets of streams that were sent again
	RoundTrip      float64          `json:"round_trip_seconds"`        // the longest of its streams; 0: not known
}

// PlainCounts are those of what went without a stream, for one reason. Calls are those that could
// be told apart in its connections.
type PlainCounts struct {
	Reason       string  `json:"reason"`        // one of docs/metrics.md
	FallBack     bool    `json:"fall_back"`     // a stream was wanted
	Connections  int64   `json:"connections"`   // that were forwarded
	Calls        int64   `json:"calls"`         // that have ended
	Failed       int64   `json:"failed"`        // of them, without a whole reply
	Faults       int64   `json:"faults"`        // of them, with a SOAP fault for a reply
	Seconds      float64 `json:"seconds"`       // sum over the calls, from the request to the end of the reply
	RequestBytes int64   `json:"request_bytes"` // without a stream
	ReplyBytes   int64   `json:"reply_bytes"`   // likewise
}

// OperationCounts are those of an operation.
type OperationCounts struct {
	Operation string `json:"operation"` // local name of the first element in the Body
	CallCounts
	Buckets []Bucket   `json:"buckets"` // of the time of calls
	Plain   PlainTimes `json:"plain"`   // its calls without a stream
}

// PlainTimes are the calls of an operation without a stream.
type PlainTimes struct {
	Calls   int64    `json:"calls"`   // that have ended
	Failed  int64    `json:"failed"`  // of them, without a whole reply
	Faults  int64    `json:"faults"`  // of them, with a SOAP fault for a reply
	Seconds float64  `json:"seconds"` // sum over the calls, from the request to the end of the reply
	Buckets []Bucket `json:"buckets"` // of the time of calls
}

// noFallBack are the reasons for which something goes without a stream because somebody wants it
// so, or goes nowhere.
var noFallBack = map[string]bool{
	"client": true, "draining": true, "in_sequence": true, "no_offer": true, "no_route": true, "own": true,
	"required": true, "silent": true,
}

// Snapshot returns what was counted.
func (m *Meter) Snapshot(now time.Time) *Snapshot {
	s := &Snapshot{Version: 1, Began: m.began, Now: now,
		Upstreams: []*UpstreamCounts{}, Operations: []*OperationCounts{}}
	for _, r := range []*Role{m.Near, m.Far, m.Serve} {
		s.Upstreams = append(s.Upstreams, r.upstreamCounts()...)
		s.Operations = append(s.Operations, r.operationCounts()...)
	}
	return s
}

func (r *Role) upstreamCounts() (list []*UpstreamCounts) {
	for _, u := range r.all() {
		if c := u.counts(); c.used() {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *UpstreamCounts) int { return cmp.Compare(a.Upstream, b.Upstream) })
	return list
}

func (r *Role) all() []*Upstream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.upstreams))
}

// used reports whether anything was counted.
func (c *UpstreamCounts) used() bool {
	return c.Calls > 0 || c.InProgress > 0 || c.Opened > 0 || len(c.Failures) > 0 || len(c.Plain) > 0
}

func (u *Upstream) counts() *UpstreamCounts {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sweepLocked()
	c := &UpstreamCounts{Upstream: u.name, CallCounts: *u.load.counts(u.role), InProgress: u.inProgress.Load(),
		Streams: len(u.live), Opened: u.opened, Failures: maps.Clone(u.failed), Gone: u.gone}
	if !u.gone {
		c.Reason, c.Why, c.Changed = u.reason, u.why, u.changed
	}
	all := u.past
	for _, l := range u.live {
		all.add(l.stream.Stats(), l.path)
		c.RoundTrip = max(c.RoundTrip, l.path.RoundTrip.Seconds())
	}
	c.SentBytes, c.ReceivedBytes = all.sent, all.received
	c.ShapesSent, c.ShapesReceived = all.shapesSent, all.shapesReceived
	c.CreditWaits, c.Resent = all.creditWaits, all.resent
	c.Ratio = ratio(&c.CallCounts)
	for _, reason := range slices.Sorted(maps.Keys(u.plain)) {
		c.Plain = append(c.Plain, u.plain[reason].counts(reason))
	}
	return c
}

func (p *Plain) counts(reason string) PlainCounts {
	l := p.load.counts(p.upstream.role)
	return PlainCounts{
		Reason: reason, FallBack: !noFallBack[reason], Connections: p.connections.Load(),
		Calls: l.Calls, Failed: l.Failed, Faults: l.Faults, Seconds: l.Seconds,
		RequestBytes: l.RequestBytes, ReplyBytes: l.ReplyBytes,
	}
}

func (r *Role) operationCounts() (list []*OperationCounts) {
	for name, o := range *r.operations.own.Load() {
		list = append(list, o.counts(r, name))
	}
	slices.SortFunc(list, func(a, b *OperationCounts) int {
		return cmp.Or(cmp.Compare(b.Calls+b.Plain.Calls, a.Calls+a.Plain.Calls),
			cmp.Compare(a.Operation, b.Operation))
	})
	none, other := r.operations.none.counts(r, NoOperation), r.operations.other.counts(r, Other)
	for _, c := range []*OperationCounts{none, other} {
		if c.Calls+c.Plain.Calls > 0 || c.RequestBytes > 0 {
			list = append(list, c)
		}
	}
	return list
}

func (o *operation) counts(r *Role, name string) *OperationCounts {
	c := &OperationCounts{Operation: name, CallCounts: *o.stream.counts(r), Buckets: o.stream.times.buckets()}
	p := o.plain.counts(r)
	c.Plain = PlainTimes{p.Calls, p.Failed, p.Faults, p.Seconds, o.plain.times.buckets()}
	return c
}

func (l *load) counts(r *Role) *CallCounts {
	c := &CallCounts{
		Role: r.name, Calls: l.calls.Load(), Failed: l.failed.Load(), Faults: l.faults.Load(),
		RequestBytes: l.request.Load(), ReplyBytes: l.reply.Load(),
		SentBytes: l.wire.Sent.Load(), ReceivedBytes: l.wire.Received.Load(),
		Seconds: time.Duration(l.took.Load()).Seconds(), AddedSeconds: time.Duration(l.added.Load()).Seconds(),
	}
	c.Ratio = ratio(c)
	return c
}

func ratio(c *CallCounts) float64 {
	if c.RequestBytes+c.ReplyBytes == 0 {
		return 0
	}
	return float64(c.SentBytes+c.ReceivedBytes) / float64(c.RequestBytes+c.ReplyBytes)
}
