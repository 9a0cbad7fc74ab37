// Package statistics counts messages of captures by session, operation and kind.
package statistics

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
)

const (
	// maxGroups bounds the groups; what comes later is counted in one more.
	maxGroups = 1024
	// Durations are counted in microseconds, within 1 %, up to a day.
	maxMicros = 24 * 3600 * 1000 * 1000
	digits    = 2
)

// Others is the operation of the group that has what is beyond the bound.
const Others = "(others)"

// Statistics counts messages. It is not safe for concurrent use.
type Statistics struct {
	groups     map[key]*messageCount
	order      []*messageCount
	operations map[[2]string]int // sessions with operations, in the order in which they came
	total      messageCount
}

type key struct{ session, operation, kind string }

type messageCount struct {
	key
	messages, faults int
	wire, envelope   int64
	durations        *hdrhistogram.Histogram // nil: none
}

// New returns empty statistics.
func New() *Statistics {
	return &Statistics{groups: map[key]*messageCount{}, operations: map[[2]string]int{}}
}

// Add counts a message. Those that agree on a session are left out.
func (s *Statistics) Add(m facts.Asked) {
	if m.Number == 0 {
		return
	}
	k := key{m.SessionString(), cmp.Or(m.Call, "-"), m.Kind}
	g := s.groups[k]
	if g == nil {
		if len(s.groups) >= maxGroups {
			k = key{"-", Others, m.Kind}
			g = s.groups[k]
		}
		if g == nil {
			g = s.begin(k)
		}
	}
	g.add(m)
	s.total.add(m)
}

// begin adds a group, behind those of the same session and operation.
func (s *Statistics) begin(k key) *messageCount {
	g := &messageCount{key: k}
	s.groups[k] = g
	of := [2]string{k.session, k.operation}
	if _, ok := s.operations[of]; !ok {
		s.operations[of] = len(s.operations)
	}
	place := func(g *messageCount) int { return s.operations[[2]string{g.session, g.operation}] }
	s.order = append(s.order, g)
	slices.SortStableFunc(s.order, func(a, b *messageCount) int { return cmp.Compare(place(a), place(b)) })
	return g
}

func (g *messageCount) add(m facts.Asked) {
	g.messages++
	g.wire += m.Wire
	g.envelope += m.BodyOctets
	if m.Fault() != "" {
		g.faults++
	}
	if m.Took > 0 {
		if g.durations == nil {
			g.durations = hdrhistogram.New(1, maxMicros, digits)
		}
		_ = g.durations.RecordValue(min(max(m.Took.Microseconds(), 1), maxMicros))
	}
}

// percentile is a duration that a share of all does not exceed, in percent; 0: there is none.
func (g *messageCount) percentile(percent float64) time.Duration {
	if g.durations == nil {
		return 0
	}
	return time.Duration(g.durations.ValueAtPercentile(percent)) * time.Microsecond
}
