package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/link"
)

// Report is what calls take by each way. Lists by way have all of them, in the order of [Ways].
type Report struct {
	Began       time.Time `json:"began"`       // time of the first bytes of a connection
	Seconds     float64   `json:"seconds"`     // from then to the last bytes
	Servers     int       `json:"servers"`     // addresses that were called; a pair stands before each
	Connections int       `json:"connections"` // connections that had calls
	Calls       int       `json:"calls"`       // requests with their replies
	Messages    int       `json:"messages"`    // requests and replies
	Others      int       `json:"others"`      // calls without SOAP, which are left out
	Cut         int       `json:"cut"`         // messages that are left out since they are not whole
	HHFR        int       `json:"hhfr"`        // connections that are hhfr streams already, which are left out
	// the server's part of the time from a request to its reply, in seconds a call
	ServerSeconds float64         `json:"server_seconds"`
	Operations    []OperationCost `json:"operations"` // those with most bytes first
	Between       []WayTraffic    `json:"between"`    // to open streams, and for the ends of connections
	Total         []WayTraffic    `json:"total"`      // the operations, and what is between
	Links         []OnLink        `json:"links"`      // the same on each link, with times
	// the total, were all calls as those of the second half are; null: there are too few
	Steady   []WayTraffic `json:"steady"`
	Smallest Smallest     `json:"smallest"`           // what has the fewest bytes: a pair, or a tunnel
	Month    []WayMonth   `json:"month"`              // 30 days of such traffic; null: the capture says too little
	NoMonth  string       `json:"no_month,omitempty"` // why it is null
}

// Smallest is which of a pair and the tunnels has the fewest bytes: first_contact, zlib or zstd.
// The pair is the one with clients by the rule.
type Smallest struct {
	First  Way `json:"first"`            // from the first call on
	Steady Way `json:"steady,omitempty"` // were all calls as those of the second half are
}

// smallest compares what ways take.
func smallest(of *[ways]traffic) Way {
	return names[slices.MinFunc([]int{firstContact, zlibbed, zstded}, func(i, j int) int {
		return cmp.Compare(of[i].Bytes, of[j].Bytes)
	})]
}

// WayTraffic is what travels by one way, each message in packets of its own.
type WayTraffic struct {
	// plain, kept, gzip, dcz, zlib, zstd, first_contact, by_connection, met_before or
	// by_connection_met
	Way     Way   `json:"way"`
	Bytes   int64 `json:"bytes"`   // with 40 for the headers of each packet
	Packets int64 `json:"packets"` // in both directions
}

// OperationCost are the calls of one operation.
type OperationCost struct {
	Name          string       `json:"operation"`      // local name; - if no body shows one
	Namespace     string       `json:"namespace"`      // of the name
	Calls         int          `json:"calls"`          // requests with their replies
	ServerSeconds float64      `json:"server_seconds"` // as above, of these calls
	Ways          []WayTraffic `json:"ways"`           // what all of them take
	Smallest      Way          `json:"smallest"`       // as above, from the first call on
}

// OnLink is what calls take on one link.
type OnLink struct {
	Link       string            `json:"link"`            // the profile
	Bandwidth  int64             `json:"bits_per_second"` // in each direction
	RTT        float64           `json:"rtt_seconds"`     // round trip of an empty line
	Ways       []WayOnLink       `json:"ways"`            // what all calls take
	Operations []OperationOnLink `json:"operations"`      // in the order of those above
}

// WayOnLink is what all calls take on a link by one way.
type WayOnLink struct {
	Way     Way   `json:"way"`     // as above
	Bytes   int64 `json:"bytes"`   // as above, but messages that wait for the line share packets
	Packets int64 `json:"packets"` // in both directions
	// time from requests to the ends of their replies, of all calls
	Seconds float64 `json:"seconds"`
	Call    float64 `json:"call_seconds"` // the same a call
	// the link cannot carry the traffic at the pace of the capture: all figures of it are 0
	TooThin bool `json:"too_thin,omitempty"`
}

// OperationOnLink are the calls of one operation on a link.
type OperationOnLink struct {
	Name string       `json:"operation"` // as above
	Ways []WaySeconds `json:"ways"`      // the times
}

// WaySeconds is the time of a call by one way.
type WaySeconds struct {
	Way  Way     `json:"way"`          // as above
	Call float64 `json:"call_seconds"` // from the request to the end of the reply; 0: the link is too thin
}

// WayMonth is what 30 days take by one way.
type WayMonth struct {
	Way       Way     `json:"way"`       // as above
	Megabytes float64 `json:"megabytes"` // millions of bytes
	Cost      float64 `json:"cost"`      // of them, at the price per megabyte
}

// month is the time that costs are for. By fewer calls than leastCalls, or a shorter time than
// leastTime, nothing is said about it: what came once would count a thousand times.
const (
	month      = 30 * 24 * time.Hour
	leastCalls = 20
	leastTime  = time.Minute
)

// finish fills in the report.
func (e *estimator) finish() {
	order := make([]int, len(e.operations))
	var took time.Duration
	for i := range order {
		order[i] = i
		took += e.operations[i].took
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(e.operations[j].ways[plain].Bytes, e.operations[i].ways[plain].Bytes)
	})
	r := e.report
	r.ServerSeconds = took.Seconds() / float64(r.Calls)
	total := e.between
	for _, i := range order {
		o := &e.operations[i]
		r.Operations = append(r.Operations, OperationCost{Name: cmp.Or(o.name.Local, "-"), Namespace: o.name.Space,
			Calls: o.calls, ServerSeconds: o.took.Seconds() / float64(o.calls), Ways: named(o.ways),
			Smallest: smallest(&o.ways)})
		for w := range total {
			total[w].add(o.ways[w])
		}
	}
	r.Between, r.Total = named(e.between), named(total)
	for i, p := range e.cfg.Links {
		r.Links = append(r.Links, e.onLink(p, e.results[i], order))
	}
	r.Smallest.First = smallest(&total)
	if r.Calls < leastCalls || r.Seconds < leastTime.Seconds() {
		r.NoMonth = fmt.Sprintf("%d calls in %.3g s say too little about 30 days: that takes %d calls, and a minute",
			r.Calls, r.Seconds, leastCalls)
	}
	if r.Calls >= leastCalls {
		later := e.halves.steady(r.Calls, &total)
		later[metBefore], later[byConnectionMet] = later[firstContact], later[byConnection]
		r.Steady, r.Smallest.Steady = named(later), smallest(&later)
	}
	if r.NoMonth == "" {
		r.Month = r.month(e.cfg.PricePerMB)
	}
}

func named(list [ways]traffic) (all []WayTraffic) {
	for i, w := range names {
		all = append(all, WayTraffic{w, list[i].Bytes, list[i].Packets})
	}
	return all
}

// month scales what the capture has: once as it is, and the rest as the second half of it.
func (r *Report) month(price float64) (all []WayMonth) {
	times := month.Seconds() / r.Seconds
	for i, w := range r.Total {
		mb := (float64(w.Bytes)*min(times, 1) + float64(r.Steady[i].Bytes)*max(times-1, 0)) / 1e6
		all = append(all, WayMonth{w.Way, mb, mb * price})
	}
	return all
}

// onLink is what happened on a link, with the operations in an order.
func (e *estimator) onLink(p link.Profile, networks []*virtualLink, order []int) OnLink {
	r := OnLink{Link: p.Name, Bandwidth: p.Bandwidth, RTT: p.RTT.Seconds()}
	for _, op := range order {
		r.Operations = append(r.Operations, OperationOnLink{Name: cmp.Or(e.operations[op].name.Local, "-")})
	}
	for i, n := range networks {
		w := names[i]
		of := WayOnLink{Way: w, TooThin: n.full}
		calls := 0
		for at, op := range order {
			one := WaySeconds{Way: w}
			if t := n.wait(op); !n.full && t.calls > 0 {
				one.Call = t.sum.Seconds() / float64(t.calls)
				of.Seconds += t.sum.Seconds()
				calls += t.calls
			}
			r.Operations[at].Ways = append(r.Operations[at].Ways, one)
		}
		if !n.full {
			sum := e.opening[i]
			for _, l := range n.lines {
				sum.add(traffic{l.Stats().Wire, l.Stats().Packets})
			}
			of.Bytes, of.Packets, of.Call = sum.Bytes, sum.Packets, of.Seconds/float64(max(calls, 1))
		}
		r.Ways = append(r.Ways, of)
	}
	return r
}
