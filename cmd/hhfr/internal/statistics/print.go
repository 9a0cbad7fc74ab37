package statistics

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/report"
)

// CountReport is what `hhfr decode --stats -o json` prints.
type CountReport struct {
	Version int     `json:"version"` // 1
	Groups  []Group `json:"groups"`  // in the order of their first messages
	Total   Group   `json:"total"`   // of all; session, operation and kind are empty
	// how many replies took how long, in classes 1, 2 and 5 times powers of ten
	Histogram []Class `json:"histogram"`
}

// Group is what messages of one kind have together.
type Group struct {
	Session   string `json:"session"`         // a UUID; - for plain SOAP
	Operation string `json:"operation"`       // of the request; (others): groups beyond the 1,024 that are told apart
	Kind      string `json:"kind"`            // request, reply, interim or one-way
	Messages  int    `json:"messages"`        // how many
	Faults    int    `json:"faults"`          // how many of them are SOAP faults
	Wire      int64  `json:"wire_octets"`     // their bytes on the wire
	Envelopes int64  `json:"envelope_octets"` // bytes of their envelopes
	// how long replies took, from the first byte of their requests
	Durations *Durations `json:"durations,omitempty"`
}

// Durations are how long replies took, in milliseconds, within 1 %.
type Durations struct {
	Replies int64   `json:"replies"` // for how many it is known
	P50     float64 `json:"p50_ms"`  // half took at most so long
	P90     float64 `json:"p90_ms"`  // 90 of 100
	P99     float64 `json:"p99_ms"`  // 99 of 100
	Max     float64 `json:"max_ms"`  // the longest
}

// Class counts the replies that took at most so long, and longer than the class before.
type Class struct {
	UpTo    float64 `json:"up_to_ms"` // milliseconds
	Replies int64   `json:"replies"`  // how many
}

// Report is all of them.
func (s *Statistics) Report() CountReport {
	r := CountReport{Version: 1, Groups: []Group{}, Total: s.total.report(), Histogram: s.classes()}
	for _, g := range s.order {
		r.Groups = append(r.Groups, g.report())
	}
	return r
}

func (g *messageCount) report() Group {
	out := Group{
		Session: g.session, Operation: g.operation, Kind: g.kind,
		Messages: g.messages, Faults: g.faults, Wire: g.wire, Envelopes: g.envelope,
	}
	if g.durations != nil {
		ms := func(percent float64) float64 { return printing.Millis(g.percentile(percent)) }
		out.Durations = &Durations{
			Replies: g.durations.TotalCount(), P50: ms(50), P90: ms(90), P99: ms(99), Max: ms(100),
		}
	}
	return out
}

// classes counts durations in classes, from the first to the last that has any.
func (s *Statistics) classes() []Class {
	list := []Class{}
	if s.total.durations == nil {
		return list
	}
	bound, factor := int64(1), 1
	for _, bar := range s.total.durations.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for bar.From > bound {
			if bound, factor = next(bound, factor); len(list) > 0 {
				list = append(list, Class{UpTo: float64(bound) / 1000})
			}
		}
		if len(list) == 0 {
			list = append(list, Class{UpTo: float64(bound) / 1000})
		}
		list[len(list)-1].Replies += bar.Count
	}
	return list
}

// next is the bound after another one: 1, 2, 5, 10, 20 and so on. factor is its leading digit.
func next(bound int64, factor int) (int64, int) {
	switch factor {
	case 1:
		return bound * 2, 2
	case 2:
		return bound / 2 * 5, 5
	}
	return bound * 2, 1
}

// Write prints tables for people: the groups, and how long replies took.
func (s *Statistics) Write(w io.Writer) error {
	table := &report.Grid{Head: []string{"SESSION", "OPERATION", "MESSAGE", "COUNT", "FAULTS", "WIRE", "SOAP", "RATIO",
		"P50", "P90", "P99", "MAX"}}
	for _, g := range append(s.order[:len(s.order):len(s.order)], &s.total) {
		row := []string{g.session[:min(8, len(g.session))], printing.Shorten(g.operation, 28), g.kind}
		if g == &s.total {
			row = []string{"all", "", ""}
		}
		row = append(row, strconv.Itoa(g.messages), strconv.Itoa(g.faults), strconv.FormatInt(g.wire, 10),
			strconv.FormatInt(g.envelope, 10), printing.RatioText(g.wire, g.envelope))
		for _, percent := range []float64{50, 90, 99, 100} {
			row = append(row, durationText(g.percentile(percent)))
		}
		table.Rows = append(table.Rows, row)
	}
	sections := []report.Section{{Title: "Messages", Table: table}}
	if classes := s.classes(); len(classes) > 0 {
		sections = append(sections, report.Section{Title: "Durations of replies", Table: histogram(classes)})
	}
	return report.Write(w, "text", sections)
}

// histogram has a bar for each class.
func histogram(classes []Class) *report.Grid {
	const columns = 40
	most := int64(1)
	for _, c := range classes {
		most = max(most, c.Replies)
	}
	table := &report.Grid{Head: []string{"UP TO", "REPLIES", ""}}
	for _, c := range classes {
		table.Rows = append(table.Rows, []string{
			durationText(time.Duration(c.UpTo * float64(time.Millisecond))),
			strconv.FormatInt(c.Replies, 10), strings.Repeat("#", int((c.Replies*columns+most-1)/most)),
		})
	}
	return table
}

// durationText is a duration in a unit that leaves few digits; empty for none.
func durationText(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Millisecond:
		return fmt.Sprintf("%d us", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", printing.Millis(d))
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}
