package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/estimate"
)

// estimateTable prints an estimate as text.
type estimateTable struct {
	report *estimate.Report
	price  float64
	widest int // the longest name that fits
	b      strings.Builder
}

// newEstimateTable makes a table for so many columns; 0: as many as it takes.
func newEstimateTable(r *estimate.Report, price float64, columns int) *estimateTable {
	const least, others = 14, 7 + 6*9 // of the names, and of the other columns
	t := &estimateTable{report: r, price: price, widest: least}
	for _, o := range r.Operations {
		t.widest = max(t.widest, 2+utf8.RuneCountInString(o.Name))
	}
	if columns > 0 {
		t.widest = max(least, min(t.widest, columns-others))
	}
	return t
}

// estimateWays are the names of the ways, in their order.
var estimateWays = []string{"PLAIN", "GZIP", "ZSTD", "FIRST", "MET", "STEADY"}

func (t *estimateTable) text() string {
	t.octets()
	t.seconds()
	t.month()
	return t.b.String()
}

// row writes one line: a name, a number of calls, and a cell for each way.
func (t *estimateTable) row(name, calls string, cells []string) {
	if letters := []rune(name); len(letters) > t.widest {
		name = string(letters[:t.widest-1]) + "…"
	}
	fmt.Fprintf(&t.b, "%-*s %6s", t.widest, name, calls)
	for _, cell := range cells {
		fmt.Fprintf(&t.b, " %8s", cell)
	}
	t.b.WriteByte('\n')
}

// cells formats something of each way.
func cells[T any](list []T, format func(T) string) (all []string) {
	for _, one := range list {
		all = append(all, format(one))
	}
	return all
}

func wayBytes(w estimate.WayTraffic) string   { return fmt.Sprint(w.Bytes) }
func wayPackets(w estimate.WayTraffic) string { return fmt.Sprint(w.Packets) }

func (t *estimateTable) octets() {
	r := t.report
	t.b.WriteString("Bytes on the link, with those of the headers of packets\n")
	t.row("OPERATION", "CALLS", estimateWays)
	for _, o := range r.Operations {
		t.row(o.Name, fmt.Sprint(o.Calls), cells(o.Ways, wayBytes))
	}
	t.row("between calls", "", cells(r.Between, wayBytes))
	t.row("all", fmt.Sprint(r.Calls), cells(r.Total, wayBytes))
	plain := float64(r.Total[0].Bytes)
	t.row("of plain", "", cells(r.Total, func(w estimate.WayTraffic) string {
		return fmt.Sprintf("%.1f%%", 100*float64(w.Bytes)/plain)
	}))
	t.row("packets", "", cells(r.Total, wayPackets))
}

const tooThin = "too thin"

func (t *estimateTable) seconds() {
	t.b.WriteString("\nSeconds from a request to the end of its reply, in the mean\n")
	t.row("LINK", "CALLS", estimateWays)
	for _, l := range t.report.Links {
		t.row(l.Link, fmt.Sprint(t.report.Calls), cells(l.Ways, func(w estimate.WayOnLink) string {
			if w.TooThin {
				return tooThin
			}
			return fmt.Sprintf("%.3f", w.Call)
		}))
	}
	if len(t.report.Links) > 1 {
		return
	}
	for i, o := range t.report.Links[0].Operations {
		t.row("  "+o.Name, fmt.Sprint(t.report.Operations[i].Calls), cells(o.Ways, func(w estimate.WaySeconds) string {
			if w.Call == 0 {
				return "-"
			}
			return fmt.Sprintf("%.3f", w.Call)
		}))
	}
}

func (t *estimateTable) month() {
	if len(t.report.Month) == 0 {
		return
	}
	fmt.Fprintf(&t.b, "\n30 days of such traffic, by the %s of the capture\n", seconds(t.report.Seconds))
	t.row("", "", estimateWays)
	t.row("MB", "", cells(t.report.Month, func(w estimate.WayMonth) string { return figure(w.Megabytes) }))
	if t.price > 0 {
		t.row("cost", "", cells(t.report.Month, func(w estimate.WayMonth) string { return figure(w.Cost) }))
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
