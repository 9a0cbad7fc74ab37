package estimate

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/estimate"
)

// estimateTable prints an estimate as text.
type estimateTable struct {
	report *estimate.Report
	price  float64
	widest int // the longest name of an operation that fits
	b      strings.Builder
}

// newEstimateTable makes a table for so many columns; 0: as many as it takes.
func newEstimateTable(r *estimate.Report, price float64, columns int) *estimateTable {
	const least, others = 14, 7 + 5*9 + 8 // of the names, and of the other columns
	t := &estimateTable{report: r, price: price, widest: least}
	for _, o := range r.Operations {
		t.widest = max(t.widest, 2+utf8.RuneCountInString(o.Name))
	}
	if columns > 0 {
		t.widest = max(least, min(t.widest, columns-others))
	}
	return t
}

// estimateRows are the ways that have rows, with their columns in tables that have one for each,
// and the ways of those who met before.
var estimateRows = []struct {
	way           estimate.Way
	title, column string
	met           estimate.Way
}{
	{estimate.Plain, "plain", "PLAIN", ""},
	{estimate.Kept, "plain, kept", "KEPT", ""},
	{estimate.Gzip, "gzip bodies", "GZIP", ""},
	{estimate.DCZ, "dcz replies", "DCZ", ""},
	{estimate.Zlib, "tunnel, zlib", "ZLIB", ""},
	{estimate.Zstd, "tunnel, zstd", "ZSTD", ""},
	{estimate.FirstContact, "hhfr", "HHFR", estimate.MetBefore},
	{estimate.ByConnection, "hhfr, by connection", "", estimate.ByConnectionMet},
}

// title is the name of the row of a way.
func title(w estimate.Way) string {
	for _, r := range estimateRows {
		if r.way == w {
			return r.title
		}
	}
	return ""
}

// columnsOf are those of some ways.
func columnsOf(all []estimate.Way) (columns []string) {
	for _, r := range estimateRows {
		if slices.Contains(all, r.way) {
			columns = append(columns, r.column)
		}
	}
	return columns
}

func (t *estimateTable) text() string {
	t.bytes()
	t.operations()
	t.seconds()
	t.month()
	return t.b.String()
}

// row writes one line: a name, and cells.
func (t *estimateTable) row(wide int, name string, cells ...string) {
	if letters := []rune(name); len(letters) > wide {
		name = string(letters[:wide-1]) + "…"
	}
	line := fmt.Sprintf("%-*s", wide, name)
	for _, cell := range cells {
		line += fmt.Sprintf(" %8s", cell)
	}
	t.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// namesWide is the width of the names of rows.
const namesWide = 19

// TrafficOf is what a way takes.
func TrafficOf(list []estimate.WayTraffic, w estimate.Way) estimate.WayTraffic {
	return list[slices.IndexFunc(list, func(one estimate.WayTraffic) bool { return one.Way == w })]
}

func (t *estimateTable) bytes() {
	r := t.report
	plain := float64(r.Total[0].Bytes)
	share := func(w estimate.WayTraffic) string { return fmt.Sprintf("%.1f%%", 100*float64(w.Bytes)/plain) }
	t.b.WriteString("Bytes on the link, with those of the headers of packets\n")
	t.row(namesWide, "WAY", "FIRST", "OF PLAIN", "PACKETS", "MET", "STEADY", "OF PLAIN")
	for _, row := range estimateRows {
		first := TrafficOf(r.Total, row.way)
		cells := []string{fmt.Sprint(first.Bytes), share(first), fmt.Sprint(first.Packets), "", "", ""}
		if row.met != "" {
			cells[3] = fmt.Sprint(TrafficOf(r.Total, row.met).Bytes)
		}
		if r.Steady != nil {
			steady := TrafficOf(r.Steady, row.way)
			cells[4], cells[5] = fmt.Sprint(steady.Bytes), share(steady)
		}
		t.row(namesWide, row.title, cells...)
	}
	fmt.Fprintf(&t.b, "Smallest from first contact on: %s", title(r.Smallest.First))
	if r.Steady != nil {
		fmt.Fprintf(&t.b, "; later: %s", title(r.Smallest.Steady))
	}
	t.b.WriteByte('\n')
}

func (t *estimateTable) operations() {
	r := t.report
	shown := []estimate.Way{estimate.Plain, estimate.DCZ, estimate.Zlib, estimate.Zstd, estimate.FirstContact}
	t.b.WriteString("\nThe same by operation, from first contact on\n")
	t.row(t.widest, "OPERATION", append(append([]string{"CALLS"}, columnsOf(shown)...), "SMALLEST")...)
	row := func(name, calls string, list []estimate.WayTraffic, least string) {
		cells := []string{calls}
		for _, w := range shown {
			cells = append(cells, fmt.Sprint(TrafficOf(list, w).Bytes))
		}
		t.row(t.widest, name, append(cells, least)...)
	}
	for _, o := range r.Operations {
		row(o.Name, fmt.Sprint(o.Calls), o.Ways, columnsOf([]estimate.Way{o.Smallest})[0])
	}
	row("between calls", "", r.Between, "")
	row("all", fmt.Sprint(r.Calls), r.Total, columnsOf([]estimate.Way{r.Smallest.First})[0])
}

const tooThin = "too thin"

// callSeconds formats the time of a call.
func callSeconds(w estimate.WayOnLink) string {
	if w.TooThin {
		return tooThin
	}
	return fmt.Sprintf("%.3f", w.Call)
}

// onLinkOf is what a way takes on a link.
func onLinkOf(l *estimate.OnLink, w estimate.Way) estimate.WayOnLink {
	return l.Ways[slices.IndexFunc(l.Ways, func(one estimate.WayOnLink) bool { return one.Way == w })]
}

func (t *estimateTable) seconds() {
	t.b.WriteString("\nSeconds from a request to the end of its reply, in the mean\n")
	if len(t.report.Links) == 1 {
		t.secondsOf(&t.report.Links[0])
		return
	}
	var names []string
	for _, l := range t.report.Links {
		names = append(names, l.Link)
	}
	t.row(namesWide, "WAY", names...)
	row := func(name string, w estimate.Way) {
		var cells []string
		for i := range t.report.Links {
			cells = append(cells, callSeconds(onLinkOf(&t.report.Links[i], w)))
		}
		t.row(namesWide, name, cells...)
	}
	for _, r := range estimateRows {
		row(r.title, r.way)
	}
}

// secondsOf has the operations on one link.
func (t *estimateTable) secondsOf(l *estimate.OnLink) {
	shown := []estimate.Way{estimate.Plain, estimate.Kept, estimate.Zlib, estimate.Zstd, estimate.FirstContact}
	t.row(t.widest, "LINK", append([]string{"CALLS"}, columnsOf(shown)...)...)
	cells := []string{fmt.Sprint(t.report.Calls)}
	for _, w := range shown {
		cells = append(cells, callSeconds(onLinkOf(l, w)))
	}
	t.row(t.widest, l.Link, cells...)
	for i, o := range l.Operations {
		cells := []string{fmt.Sprint(t.report.Operations[i].Calls)}
		for _, w := range shown {
			at := slices.IndexFunc(o.Ways, func(one estimate.WaySeconds) bool { return one.Way == w })
			if o.Ways[at].Call == 0 {
				cells = append(cells, "-")
			} else {
				cells = append(cells, fmt.Sprintf("%.3f", o.Ways[at].Call))
			}
		}
		t.row(t.widest, "  "+o.Name, cells...)
	}
}

func (t *estimateTable) month() {
	r := t.report
	if r.NoMonth != "" {
		fmt.Fprintf(&t.b, "\n%s\n", r.NoMonth)
		return
	}
	fmt.Fprintf(&t.b, "\n30 days of such traffic, by the %s of the capture\n", seconds(r.Seconds))
	head := []string{"MB"}
	if t.price > 0 {
		head = append(head, "COST")
	}
	t.row(namesWide, "WAY", head...)
	for _, row := range estimateRows {
		at := slices.IndexFunc(r.Month, func(w estimate.WayMonth) bool { return w.Way == row.way })
		cells := []string{figure(r.Month[at].Megabytes), figure(r.Month[at].Cost)}
		t.row(namesWide, row.title, cells[:len(head)]...)
	}
}

// seconds formats a duration with what matters of it.
func seconds(s float64) string {
	switch {
	case s >= 2*24*3600:
		return fmt.Sprintf("%.1f days", s/24/3600)
	case s >= 2*3600:
		return fmt.Sprintf("%.1f hours", s/3600)
	case s >= 120:
		return fmt.Sprintf("%.1f minutes", s/60)
	}
	return fmt.Sprintf("%.3g s", s)
}

// figure formats a number with the digits that matter, in 8 columns.
func figure(v float64) string {
	switch {
	case v >= 1e7:
		return fmt.Sprintf("%.2g", v)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
