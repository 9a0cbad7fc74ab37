package estimate

import (
	"cmp"
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
	Month         []WayMonth      `json:"month"`      // 30 days of such traffic; empty: the capture has one moment only
}

// WayTraffic is what travels by one way, each message in packets of its own.
type WayTraffic struct {
	// plain, gzip, zstd, first_contact, met_before or steady
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

// month is the time that costs are for.
const month = 30 * 24 * time.Hour

// finish fills in the report.
func (e *estimator) finish() {
	order := make([]int, len(e.operations))
	var took time.Duration
	for i := range order {
		order[i] = i
		took += e.operations[i].took
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(e.operations[j].ways[Plain.index()].Bytes, e.operations[i].ways[Plain.index()].Bytes)
	})
	r := e.report
	r.ServerSeconds = took.Seconds() / float64(r.Calls)
	total := e.between
	for _, i := range order {
		o := &e.operations[i]
		r.Operations = append(r.Operations, OperationCost{Name: cmp.Or(o.name.Local, "-"), Namespace: o.name.Space,
			Calls: o.calls, ServerSeconds: o.took.Seconds() / float64(o.calls), Ways: named(o.ways)})
		for w := range total {
			total[w].add(o.ways[w])
		}
	}
	r.Between, r.Total = named(e.between), named(total)
	for i, p := range e.cfg.Links {
		r.Links = append(r.Links, e.onLink(p, e.results[i], order))
	}
	r.Month = r.month(total, e.cfg.PricePerMB)
}

func named(list [ways]traffic) (all []WayTraffic) {
	for i, w := range Ways() {
		all = append(all, WayTraffic{w, list[i].Bytes, list[i].Packets})
	}
	return all
}

// month scales what the capture has. Ends that did not know each other do so after the first time.
func (r *Report) month(total [ways]traffic, price float64) []WayMonth {
	if r.Seconds <= 0 {
		return []WayMonth{}
	}
	times := month.Seconds() / r.Seconds
	var all []WayMonth
	for i, w := range Ways() {
		octets := float64(total[i].Bytes) * times
		if w == FirstContact || w == MetBefore {
			octets = float64(total[i].Bytes)*min(times, 1) + float64(total[Steady.index()].Bytes)*max(times-1, 0)
		}
		all = append(all, WayMonth{w, octets / 1e6, octets / 1e6 * price})
	}
	return all
}

// onLink is what happened on a link, with the operations in an order.
func (e *estimator) onLink(p link.Profile, networks [ways]*virtualLink, order []int) OnLink {
	r := OnLink{Link: p.Name, Bandwidth: p.Bandwidth, RTT: p.RTT.Seconds()}
	for _, op := range order {
		r.Operations = append(r.Operations, OperationOnLink{Name: cmp.Or(e.operations[op].name.Local, "-")})
	}
	for i, w := range Ways() {
		n := networks[i]
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
