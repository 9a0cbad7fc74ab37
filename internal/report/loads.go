package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/papers"
)

// rush is what repeats of a load have in common.
type rush struct {
	peer, service, way string
	clients            int
	rate               float64
}

func (r rush) compare(o rush) int {
	return cmp.Or(cmp.Compare(r.peer, o.peer), cmp.Compare(r.service, o.service), cmp.Compare(r.rate, o.rate),
		cmp.Compare(r.way, o.way), cmp.Compare(r.clients, o.clients))
}

// loadsOf groups the loads of a run.
func loadsOf(m *Measurement) (order []rush, all map[rush][]experiment.LoadRow) {
	all = map[rush][]experiment.LoadRow{}
	for _, l := range m.Loads {
		k := rush{l.Peer, l.Service, l.Way, l.Clients, l.Rate}
		all[k] = append(all[k], l)
	}
	return slices.SortedStableFunc(maps.Keys(all), rush.compare), all
}

// mid is the median of one figure of repeats.
func mid(list []experiment.LoadRow, of func(l experiment.LoadRow) float64) float64 {
	var x []float64
	for _, l := range list {
		if l.Doubt == "" {
			x = append(x, of(l))
		}
	}
	m, _, _ := experiment.Median(x)
	return m
}

func perSecond(l experiment.LoadRow) float64    { return l.PerSecond() }
func errorPercent(l experiment.LoadRow) float64 { return l.ErrorPercent() }
func execMillis(l experiment.LoadRow) float64   { return l.MeanMillis }
func serverMillis(l experiment.LoadRow) float64 { return l.ServerMillis }

// loads makes the tables and pictures of many clients.
func loads(m *Measurement) []Section {
	order, all := loadsOf(m)
	if len(order) == 0 {
		return nil
	}
	list := []Section{loadTable(order, all)}
	list = append(list,
		overClients("Answers a second", "as in figures 1 and 3 to 7 of the phones study", "a second",
			order, all, perSecond, func(p papers.PhoneLoad) float64 { return p.PerSecond }),
		overClients("Response time", "from the time that a request was to be sent", "ms",
			order, all, execMillis, func(p papers.PhoneLoad) float64 { return p.ExecMillis }))
	if s, any := courseOfErrors(order, all); any {
		list = append(list, s)
	}
	return append(list, distribution(order, all), platforms(order, all))
}

// loadTable has the columns of the study, and quantiles.
func loadTable(order []rush, all map[rush][]experiment.LoadRow) Section {
	t := &Grid{Head: []string{
		"service", "way", "clients", "responses", "successful", "errors %", "successful/s", "exec ms", "server ms",
		"p50", "p99", "max", "bytes",
	}}
	doubts := ""
	for _, k := range order {
		l := all[k]
		for _, l := range l {
			if l.Doubt != "" {
				doubts += fmt.Sprintf(" Left out: %s, %d clients, repeat %d: %s.",
					k.way, k.clients, l.Repeat, l.Doubt)
			}
		}
		if !slices.ContainsFunc(l, func(l experiment.LoadRow) bool { return l.Doubt == "" }) {
			continue
		}
		way := k.way
		if k.rate > 0 {
			way = fmt.Sprintf("%s, %s/s", way, Figure(k.rate))
		}
		server := ""
		if ms := mid(l, serverMillis); ms >= 0 {
			server = Figure(ms)
		}
		count := func(of func(l experiment.LoadRow) float64) string { return fmt.Sprintf("%.0f", mid(l, of)) }
		t.Rows = append(t.Rows, []string{
			k.service, way, fmt.Sprint(k.clients),
			count(func(l experiment.LoadRow) float64 { return float64(l.Responses) }),
			count(func(l experiment.LoadRow) float64 { return float64(l.Successful) }),
			Figure(mid(l, errorPercent)), Figure(mid(l, perSecond)), Figure(mid(l, execMillis)), server,
			Figure(mid(l, func(l experiment.LoadRow) float64 { return l.P50Millis })),
			Figure(mid(l, func(l experiment.LoadRow) float64 { return l.P99Millis })),
			Figure(mid(l, func(l experiment.LoadRow) float64 { return l.MaxMillis })),
			count(func(l experiment.LoadRow) float64 {
				return float64(l.SentOctets+l.ReceivedOctets) / float64(max(l.Responses, 1))
			}),
		})
	}
	return Section{
		Title: "Load", Table: t,
		Text: "Many clients at once, medians of the repeats. The columns up to server ms are those of the phones " +
			"study." + doubts,
	}
}

// overClients is a figure over the number of clients, with the study's platforms.
func overClients(title, about, unit string, order []rush, all map[rush][]experiment.LoadRow,
	of func(experiment.LoadRow) float64, paper func(papers.PhoneLoad) float64) Section {
	p := &Picture{Kind: "lines", X: "clients", Y: unit, Log: true}
	add := func(name string, isPaper bool, x, y float64) {
		if y <= 0 { // it has no logarithm
			return
		}
		i := slices.IndexFunc(p.Series, func(s Series) bool { return s.Name == name })
		if i < 0 {
			i, p.Series = len(p.Series), append(p.Series, Series{Name: name, Paper: isPaper})
		}
		p.Series[i].Points = append(p.Series[i].Points, [2]float64{x, y})
	}
	geoip := false
	for _, k := range order {
		if k.rate == 0 {
			add(k.service+", "+k.way, false, float64(k.clients), mid(all[k], of))
		}
		geoip = geoip || k.service == "geoip"
	}
	if geoip {
		for _, row := range papers.PhoneLoads() {
			add(row.Platform+", study", true, float64(row.Clients), paper(row))
		}
	}
	return Section{Title: title, Text: "Over the number of clients, " + about + ".", Chart: p}
}

// courseOfErrors is figure 2 of the study: errors over time, of the loads that had any.
func courseOfErrors(order []rush, all map[rush][]experiment.LoadRow) (s Section, any bool) {
	p := &Picture{Kind: "lines", X: "seconds", Y: "errors a second"}
	for _, k := range order {
		l := all[k][0]
		if len(l.Errors) == 0 {
			continue
		}
		series := Series{Name: fmt.Sprintf("%s, %d clients", k.way, k.clients)}
		for _, second := range l.Course {
			n := int64(0)
			for _, count := range second.Errors {
				n += count
			}
			series.Points = append(series.Points, [2]float64{float64(second.At), float64(n)})
		}
		p.Series = append(p.Series, series)
	}
	return Section{Title: "Errors over time", Text: "As in figure 2 of the phones study.", Chart: p}, len(p.Series) > 0
}

// distribution is the histogram of the load with the most clients.
func distribution(order []rush, all map[rush][]experiment.LoadRow) Section {
	p := &Picture{Kind: "lines", X: "ms", Y: "percent of responses that took no longer", Log: false}
	most := 0
	for _, k := range order {
		most = max(most, k.clients)
	}
	for _, k := range order {
		if k.clients != most {
			continue
		}
		l := all[k][0]
		total, so := int64(0), int64(0)
		for _, b := range l.Histogram {
			total += b.Count
		}
		s := Series{Name: fmt.Sprintf("%s, %s", k.service, k.way)}
		for _, b := range l.Histogram {
			so += b.Count
			s.Points = append(s.Points, [2]float64{b.Millis, 100 * float64(so) / float64(total)})
		}
		if len(s.Points) > 0 {
			p.Series = append(p.Series, s)
		}
	}
	return Section{
		Title: fmt.Sprintf("Response times of %d clients", most),
		Text:  "How many percent of the responses of the first repeat had come after so many milliseconds.", Chart: p,
	}
}

// platforms is table 5.7 of the study, with what was measured here above it.
func platforms(order []rush, all map[rush][]experiment.LoadRow) Section {
	t := &Grid{Head: []string{"platform", "successful/s", "errors % at 25", "exec ms at 25", "server ms at 25"}}
	const clients = 25
	for _, k := range order {
		if k.clients != clients || k.rate > 0 {
			continue
		}
		most := 0.0
		for other, l := range all {
			if other.peer == k.peer && other.service == k.service && other.way == k.way && other.rate == 0 {
				most = max(most, mid(l, perSecond))
			}
		}
		server := ""
		if ms := mid(all[k], serverMillis); ms >= 0 {
			server = Figure(ms)
		}
		t.Rows = append(t.Rows, []string{
			"here: " + k.service + ", " + k.way, Figure(most), Figure(mid(all[k], errorPercent)),
			Figure(mid(all[k], execMillis)), server,
		})
	}
	most := map[string]float64{}
	for _, p := range papers.PhoneLoads() {
		most[p.Platform] = max(most[p.Platform], p.PerSecond)
	}
	for _, p := range papers.PhoneLoads() {
		if p.Clients == clients {
			t.Rows = append(t.Rows, []string{
				p.Platform, Figure(most[p.Platform]), Figure(p.ErrorPercent),
				Figure(p.ExecMillis), Figure(p.ServerMillis),
			})
		}
	}
	return Section{
		Title: "Beside the study's phones", Table: t,
		Text: "Table 5.7 of the study: the most answers a second, and the rest with 25 clients.",
	}
}
