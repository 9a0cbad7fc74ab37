package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/link"
)

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
