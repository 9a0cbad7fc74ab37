package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/papers"
)

// where is what sessions of one table have in common.
type where struct{ service, network string }

// lot is what repeats of a session have in common.
type lot struct {
	way     string
	size, n int
}

// repeated is what the repeats of a session measured, without what does not count.
type repeated struct {
	millis, setup, octets []float64
	doubtful              int
}

// network names where a session went.
func network(s experiment.SessionRow) string {
	return cmp.Or(s.Link, s.Peer, "in one process")
}

// sessionsOf groups the sessions of a run.
func sessionsOf(m *Measurement) map[where]map[lot]*repeated {
	groups := map[where]map[lot]*repeated{}
	for _, s := range m.Sessions {
		at, c := where{s.Service, network(s)}, lot{s.Way, s.Size, s.N}
		if groups[at] == nil {
			groups[at] = map[lot]*repeated{}
		}
		r := groups[at][c]
		if r == nil {
			r = &repeated{}
			groups[at][c] = r
		}
		if s.Doubt != "" {
			r.doubtful++
			continue
		}
		r.millis, r.setup = append(r.millis, s.Millis), append(r.setup, s.SetupMillis)
		r.octets = append(r.octets, float64(s.SentOctets+s.ReceivedOctets))
	}
	return groups
}

// sessions makes the tables and pictures of sessions.
func sessions(m *Measurement) (list []Section) {
	groups := sessionsOf(m)
	for _, at := range slices.SortedStableFunc(maps.Keys(groups), func(a, b where) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.network, b.network))
	}) {
		g := &grid{at: at, cells: groups[at], paper: map[lot]float64{}}
		g.collect(m)
		list = append(list, g.table())
		for _, size := range g.sizes {
			list = append(list, g.overCount(size))
		}
		if len(g.sizes) > 1 {
			for _, n := range g.counts {
				list = append(list, g.overSize(n))
			}
		}
		list = append(list, g.bytes())
	}
	return list
}

// grid is the sessions of one service on one network: sizes down, numbers of messages across.
type grid struct {
	at            where
	cells         map[lot]*repeated
	ways          []string // in the order in which they were measured
	sizes, counts []int
	paper         map[lot]float64 // of hhfr and soap, in ms
}

// What the papers' series are called.
const (
	paperHHFR = "HHFR, paper"
	paperSOAP = "SOAP, paper"
)

// isHHFR reports whether messages travel with hhfr.
func isHHFR(way string) bool { return !isPlain(way) }

// isPlain reports whether they are plain SOAP.
func isPlain(way string) bool {
	return strings.HasPrefix(way, "soap-") || strings.HasPrefix(way, "http") || strings.HasPrefix(way, "h2")
}

func (g *grid) collect(m *Measurement) {
	for _, s := range m.Sessions {
		if (where{s.Service, network(s)}) != g.at {
			continue
		}
		if !slices.Contains(g.ways, s.Way) {
			g.ways = append(g.ways, s.Way)
		}
		if !slices.Contains(g.sizes, s.Size) {
			g.sizes = append(g.sizes, s.Size)
		}
		if !slices.Contains(g.counts, s.N) {
			g.counts = append(g.counts, s.N)
		}
	}
	slices.Sort(g.sizes)
	slices.Sort(g.counts)
	for _, s := range papers.Sessions() {
		name := paperSOAP
		if s.HHFR {
			name = paperHHFR
		}
		if s.Service == g.at.service && slices.Contains(g.sizes, s.Size) {
			g.paper[lot{name, s.Size, s.N}] = s.Millis
		}
	}
}

// millis is the median of a cell, if it has any time that counts.
func (g *grid) millis(c lot) (mid, low, high float64, ok bool) {
	r := g.cells[c]
	if r == nil || len(r.millis) == 0 {
		return 0, 0, 0, false
	}
	mid, low, high = experiment.Median(r.millis)
	return mid, low, high, true
}

func (g *grid) table() Section {
	t := &Grid{Head: []string{"items", "way"}}
	for _, n := range g.counts {
		t.Head = append(t.Head, fmt.Sprintf("n = %d", n))
	}
	rivals := g.rivals()
	for _, r := range rivals {
		t.Head = append(t.Head, "N to "+r)
	}
	repeats, doubtful := 0, 0
	for _, size := range g.sizes {
		for _, way := range append([]string{paperHHFR, paperSOAP}, g.ways...) {
			row, any := []string{fmt.Sprint(size), way}, false
			for _, n := range g.counts {
				c := lot{way, size, n}
				text := ""
				if mid, low, high, ok := g.millis(c); ok {
					text = spread(mid, low, high)
				} else if ms := g.paper[c]; ms > 0 {
					text = Figure(ms)
				}
				if r := g.cells[c]; r != nil {
					repeats, doubtful = max(repeats, len(r.millis)), doubtful+r.doubtful
				}
				row, any = append(row, text), any || text != ""
			}
			for _, rival := range rivals {
				row = append(row, g.breakEvenText(way, rival, size))
			}
			if any {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	text := fmt.Sprintf("Milliseconds of a whole session, %s. Medians of %d, with the half width of an interval of "+
		"95 %% from 6 on, else of all. N: from how many messages on, of these, hhfr is as fast.", g.at.network, repeats)
	if doubtful > 0 {
		text += fmt.Sprintf(" Left out, as their times do not count: %d.", doubtful)
	}
	return Section{Title: "Sessions of " + g.at.service, Text: text, Table: t}
}

// rivals are those with plain SOAP, if any with hhfr was measured beside them.
func (g *grid) rivals() (list []string) {
	if !slices.ContainsFunc(g.ways, isHHFR) {
		return nil
	}
	for _, way := range g.ways {
		if isPlain(way) {
			list = append(list, way)
		}
	}
	return list
}

// breakEven is the least number of messages from which on hhfr is as fast; 0: none of those.
func (g *grid) breakEven(way, rival string, size int) (n int) {
	for _, count := range slices.Backward(g.counts) {
		own, _, _, there := g.millis(lot{way, size, count})
		other, _, _, also := g.millis(lot{rival, size, count})
		if !there || !also {
			continue
		}
		if own > other {
			break
		}
		n = count
	}
	return n
}

func (g *grid) breakEvenText(way, rival string, size int) string {
	if !isHHFR(way) || way == paperHHFR || way == paperSOAP {
		return ""
	}
	if n := g.breakEven(way, rival, size); n > 0 {
		return fmt.Sprint(n)
	}
	return "-"
}

// overCount is figures 7 and 9 of paper 1: time over the number of messages.
func (g *grid) overCount(size int) Section {
	p := &Picture{Kind: "lines", X: "messages", Y: "ms", Log: true}
	add := func(way string, at func(n int) (float64, bool)) {
		s := Series{Name: way, Paper: way == paperHHFR || way == paperSOAP}
		for _, n := range g.counts {
			if ms, ok := at(n); ok {
				s.Points = append(s.Points, [2]float64{float64(n), ms})
			}
		}
		if len(s.Points) > 0 {
			p.Series = append(p.Series, s)
		}
	}
	for _, way := range g.ways {
		add(way, func(n int) (float64, bool) {
			ms, _, _, ok := g.millis(lot{way, size, n})
			return ms, ok
		})
	}
	for _, way := range []string{paperHHFR, paperSOAP} {
		add(way, func(n int) (float64, bool) { ms, ok := g.paper[lot{way, size, n}]; return ms, ok })
	}
	rivals := g.rivals()
	for _, way := range g.ways {
		if len(rivals) > 0 && isHHFR(way) {
			if n := g.breakEven(way, rivals[0], size); n > 0 {
				p.Marks = append(p.Marks, Pin{float64(n), "N " + way})
			}
		}
	}
	return Section{
		Title: fmt.Sprintf("%s: sessions, %d items", g.at.service, size),
		Text:  "Time over the number of messages, as in figures 7 and 9 of the first paper.",
		Chart: p,
	}
}

// overSize is figures 5, 6 and 8 of paper 1: time over the length of the messages.
func (g *grid) overSize(n int) Section {
	p := &Picture{Kind: "lines", X: "items in a message", Y: "ms", Log: true}
	for _, way := range append([]string{paperHHFR, paperSOAP}, g.ways...) {
		s := Series{Name: way, Paper: way == paperHHFR || way == paperSOAP}
		for _, size := range g.sizes {
			c := lot{way, size, n}
			if ms, _, _, ok := g.millis(c); ok {
				s.Points = append(s.Points, [2]float64{float64(size), ms})
			} else if ms := g.paper[c]; ms > 0 {
				s.Points = append(s.Points, [2]float64{float64(size), ms})
			}
		}
		if len(s.Points) > 0 {
			p.Series = append(p.Series, s)
		}
	}
	return Section{
		Title: fmt.Sprintf("%s: sessions, n = %d", g.at.service, n),
		Text:  "Time over the length of the messages, as in figures 5, 6 and 8 of the first paper.",
		Chart: p,
	}
}

// bytes is bars of what the longest session takes on the network.
func (g *grid) bytes() Section {
	size, n := g.sizes[len(g.sizes)-1], g.counts[len(g.counts)-1]
	p := &Picture{Kind: "bars", X: "way", Y: "bytes"}
	s := Series{Name: "bytes"}
	t := &Grid{Head: []string{"way", "bytes", "a message"}}
	for _, way := range g.ways {
		r := g.cells[lot{way, size, n}]
		if r == nil || len(r.octets) == 0 {
			continue
		}
		mid, _, _ := experiment.Median(r.octets)
		s.Points = append(s.Points, [2]float64{float64(len(p.Labels)), mid})
		p.Labels = append(p.Labels, way)
		t.Rows = append(t.Rows, []string{way, fmt.Sprintf("%.0f", mid), Figure(mid / float64(n))})
	}
	p.Series = []Series{s}
	return Section{
		Title: fmt.Sprintf("%s: bytes, %d items, n = %d", g.at.service, size, n),
		Text:  "In both directions, with all that opens the session.",
		Chart: p, Table: t,
	}
}

// overheads are the costs beside the messages, each repeat.
func overheads(m *Measurement) []Section {
	if len(m.Overheads) == 0 {
		return nil
	}
	type key struct{ name, network string }
	var order []key
	all := map[key][]experiment.OverheadRow{}
	for _, o := range m.Overheads {
		k := key{o.Name, cmp.Or(o.Link, o.Peer)}
		if all[k] == nil {
			order = append(order, k)
		}
		all[k] = append(all[k], o)
	}
	t := &Grid{Head: []string{"cost", "network", "repeats", "ms", "sent", "received"}}
	p := &Picture{Kind: "lines", X: "repeat", Y: "ms"}
	for _, k := range order {
		var ms []float64
		s := Series{Name: k.name + ", " + k.network}
		for _, o := range all[k] {
			ms = append(ms, o.Millis)
			s.Points = append(s.Points, [2]float64{float64(o.Repeat), o.Millis})
		}
		mid, low, high := experiment.Median(ms)
		last := all[k][len(all[k])-1]
		t.Rows = append(t.Rows, []string{
			k.name, k.network, fmt.Sprint(len(ms)), spread(mid, low, high),
			fmt.Sprint(last.SentOctets), fmt.Sprint(last.ReceivedOctets),
		})
		p.Series = append(p.Series, s)
	}
	return []Section{{
		Title: "Costs beside the messages",
		Text: "Oa: a header set in a context store, and read. Ob: negotiation. Oc: what a first message takes more " +
			"than a second. The paper: Oa 4120 ms, Ob 4800 ms.",
		Table: t, Chart: p,
	}}
}
