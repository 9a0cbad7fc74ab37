package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/papers"
)

// beside are the sessions that [Beside] compares: items and messages.
var beside = []struct {
	service, items string
	size, n        int
}{
	{"concat", "strings", 4, 8},
	{"sum", "floats", 10, 10},
}

// Beside is one table of what the papers measured and what was measured here, and a chart in text
// of the last sessions in it.
func Beside(m *Measurement) (Section, string) {
	t := &Grid{Head: []string{"what", "paper", "this machine"}}
	add := func(what, paper, here string) { t.Rows = append(t.Rows, []string{what, paper, here}) }
	var chart []bar
	for _, b := range beside {
		g := &grid{at: where{service: b.service}, cells: map[lot]*repeated{}, paper: map[lot]float64{}}
		for at, cells := range sessionsOf(m) {
			if at.service == b.service {
				g.at, g.cells = at, cells
			}
		}
		g.collect(m)
		paper := func(name string) float64 { return g.paper[lot{name, b.size, b.n}] }
		here := func(way string) float64 { ms, _, _, _ := g.millis(lot{way, b.size, b.n}); return ms }
		about := fmt.Sprintf("%d messages of %d %s, ", b.n, b.size, b.items)
		add(about+"SOAP, a connection each", withUnit(paper(paperSOAP), "ms"), withUnit(here("soap-new"), "ms"))
		add(about+"SOAP on one connection", "-", withUnit(here("soap-kept"), "ms"))
		add(about+"HHFR, each reply awaited", "-", withUnit(here("first-call"), "ms"))
		add(about+"HHFR, queued", withUnit(paper(paperHHFR), "ms"), withUnit(here("first-call-queued"), "ms"))
		add(about+"HHFR, queued, the peers have met", "-", withUnit(here("met-queued"), "ms"))
		add(about+"SOAP to HHFR", ratio(paper(paperSOAP), paper(paperHHFR)),
			ratio(here("soap-new"), here("first-call-queued")))
		octets := func(way string) float64 {
			if r := g.cells[lot{way, b.size, b.n}]; r != nil {
				x, _, _ := experiment.Median(r.octets)
				return x
			}
			return 0
		}
		add(about+"bytes, SOAP and HHFR", "-", told([]string{
			withUnit(octets("soap-new"), "B"), withUnit(octets("met-queued"), "B"),
		}))
		chart = []bar{
			{"SOAP, paper", paper(paperSOAP)}, {"HHFR, paper", paper(paperHHFR)}, {"SOAP, here", here("soap-new")},
			{"SOAP, one connection", here("soap-kept")}, {"HHFR, here", here("first-call-queued")},
			{"HHFR, here, met", here("met-queued")},
		}
	}
	least, most, fewest, worst := 0.0, 0.0, 100.0, 0.0
	for _, p := range papers.PhoneLoads() {
		if p.Clients != studied {
			continue
		}
		if least == 0 || p.PerSecond < least {
			least = p.PerSecond
		}
		most = max(most, p.PerSecond)
		fewest, worst = min(fewest, p.ErrorPercent), max(worst, p.ErrorPercent)
	}
	order, all := loadsOf(m)
	for _, k := range order {
		if k.clients != studied {
			continue
		}
		about := fmt.Sprintf("%d clients, %s, ", studied, k.way)
		phones, failed := "-", "-"
		if k.way == "soap-new" {
			phones = fmt.Sprintf("%s to %s", Figure(least), Figure(most))
			failed = fmt.Sprintf("%s to %s %%", Figure(fewest), Figure(worst))
		}
		add(about+"right answers a second", phones, Figure(mid(all[k], perSecond)))
		add(about+"errors", failed, Figure(mid(all[k], errorPercent))+" %")
	}
	return Section{
		Title: "The papers beside this machine", Table: t,
		Text: "Sessions: a Treo 600 at 14.4 kbit/s in the paper, whose HHFR queued its messages; an emulated link " +
			"of that rate here. Clients: phones and emulators that serve in the study, loopback here.",
	}, "Milliseconds of 10 messages of 10 floats\n" + bars(chart)
}

// studied is the most clients of the phones study.
const studied = 25

// bar is a line of a chart.
type bar struct {
	name  string
	value float64
}

// bars draws them in 80 columns.
func bars(list []bar) string {
	const columns = 48
	most, widest := 0.0, 0
	for _, b := range list {
		most, widest = max(most, b.value), max(widest, utf8.RuneCountInString(b.name))
	}
	out := &strings.Builder{}
	for _, b := range list {
		if b.value > 0 {
			n := max(1, int(columns*b.value/most+0.5))
			fmt.Fprintf(out, "%-*s %s %s\n", widest, b.name, strings.Repeat("#", n), Figure(b.value))
		}
	}
	return out.String()
}

func withUnit(x float64, unit string) string {
	if x <= 0 {
		return "-"
	}
	return Figure(x) + " " + unit
}

func ratio(a, b float64) string {
	if a <= 0 || b <= 0 {
		return "-"
	}
	return Figure(a/b) + " times"
}
