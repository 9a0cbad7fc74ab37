package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hhfr/hhfr/internal/experiment"
)

// quantity is what two runs are compared by.
type quantity struct{ what, unit string }

// quantities are the repeats of all that runs measured, by unit and in the order of the file.
func quantities(runs []*Measurement) (order []quantity, all map[quantity][]float64) {
	all = map[quantity][]float64{}
	add := func(x float64, unit, format string, args ...any) {
		q := quantity{fmt.Sprintf(format, args...), unit}
		if all[q] == nil {
			order = append(order, q)
		}
		all[q] = append(all[q], x)
	}
	for _, m := range runs {
		for _, s := range m.Sessions {
			if s.Doubt != "" {
				continue
			}
			const session = "%s(%d), %s, n = %d"
			add(s.Millis, "ms", session, s.Service, s.Size, s.Way, s.N)
			add(float64(s.SentOctets+s.ReceivedOctets), "bytes", session, s.Service, s.Size, s.Way, s.N)
		}
		for _, o := range m.Overheads {
			add(o.Millis, "ms", "%s", told([]string{o.Name, o.Link}))
		}
		for _, l := range m.Loads {
			if l.Doubt != "" {
				continue
			}
			what := fmt.Sprintf("%s, %s, %d clients", l.Service, l.Way, l.Clients)
			if l.Rate > 0 {
				what += fmt.Sprintf(", %s/s", Figure(l.Rate))
			}
			add(perSecond(l), more, "%s", what)
			add(l.P50Millis, "p50 ms", "%s", what)
			add(l.P99Millis, "p99 ms", "%s", what)
			add(errorPercent(l), "errors %", "%s", what)
		}
	}
	slices.SortStableFunc(order, func(x, y quantity) int { return cmp.Compare(x.unit, y.unit) })
	return order, all
}

// more is the unit of which more is better; of all others less is.
const more = "a second"

// Compare compares what both runs measured: the medians, and whether they differ by more than
// chance. Its errors say that there is nothing that both have.
func Compare(a, b []*Measurement) ([]Section, error) {
	_, before := quantities(a)
	order, after := quantities(b)
	t := &Grid{Head: []string{"what", "unit", a[0].Name, b[0].Name, "change", "p", ""}}
	only := 0
	for q := range before {
		if after[q] == nil {
			only++
		}
	}
	for _, q := range order {
		old := before[q]
		if old == nil {
			only++
			continue
		}
		t.Rows = append(t.Rows, difference(q, old, after[q]))
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("nothing was measured in both %s and %s", a[0].Name, b[0].Name)
	}
	text := "Medians. p: how probable such a difference is without a cause (Mann and Whitney's U test); " +
		"with it at most 0.05 the last column says better or worse."
	if only > 0 {
		text += fmt.Sprintf(" %d figures stand in one of both only.", only)
	}
	return []Section{
		machines(slices.Concat(a, b)),
		{Title: "Comparison", Text: text, Table: t},
	}, nil
}

func difference(q quantity, before, after []float64) []string {
	was, _, _ := experiment.Median(before)
	is, _, _ := experiment.Median(after)
	p, significant := experiment.Differ(before, after)
	change, verdict := "", ""
	switch {
	case was == is:
		change = "0 %"
	case was > 0:
		change = fmt.Sprintf("%+.1f %%", 100*(is/was-1))
	}
	if significant && was != is {
		verdict = "worse"
		if (is > was) == (q.unit == more) {
			verdict = "better"
		}
	}
	return []string{
		q.what, q.unit,
		fmt.Sprintf("%s (%d)", Figure(was), len(before)), fmt.Sprintf("%s (%d)", Figure(is), len(after)),
		change, fmt.Sprintf("%.3f", p), verdict,
	}
}
