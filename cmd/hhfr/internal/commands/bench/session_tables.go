package bench

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/report"
)

// sessionTables makes the tables of bench session, each as the papers' stand: sizes down, messages
// across.
func sessionTables(r *bench.Results) (list []report.Section) {
	type table struct {
		service string
		way     bench.SessionWay
	}
	var order []table
	all := map[table][]bench.Repeated{}
	for _, c := range bench.Repeats(r.Cells) {
		t := table{c.Service, c.Way}
		if all[t] == nil {
			order = append(order, t)
		}
		all[t] = append(all[t], c)
	}
	slices.SortStableFunc(order, func(a, b table) int { // an interrupt may have cut the last size short
		return slices.IndexFunc(r.Cells, func(c bench.Cell) bool { return c.Service == a.service }) -
			slices.IndexFunc(r.Cells, func(c bench.Cell) bool { return c.Service == b.service })
	})
	for _, t := range order {
		s := sessionTable(all[t], r.BreakEvens)
		s.Title = fmt.Sprintf("%s, %s", t.service, t.way)
		list = append(list, s)
	}
	if len(list) > 0 {
		list[0].Text = legend(r)
	}
	list = append(list, overheadTable(r.Overheads)...)
	list = append(list, report.Memories(r.Memory)...)
	list = append(list, modelTable(r.Models)...)
	return append(list, sweepTable(r.Sweeps)...)
}

// legend says how to read the tables.
func legend(r *bench.Results) string {
	text := "Milliseconds of a session, with its connections and negotiation, here / in the paper (a phone at " +
		"14.4 kbit/s; its SOAP had a connection for each message)."
	repeats, bad := 0, 0
	for _, c := range bench.Repeats(r.Cells) {
		repeats, bad = max(repeats, c.Count), bad+c.Bad
	}
	if repeats > 1 {
		text += fmt.Sprintf(" Medians of %d", repeats)
		if bench.HasInterval(repeats) {
			text += ", ± the half width of their interval of 95 %"
		}
		text += "."
	}
	if len(r.BreakEvens) > 0 {
		text += " N: from how many messages on, of these, hhfr is as fast as SOAP (new and kept connections, kept " +
			"with gzip, HTTP/2; against gzip within 1 %); -: from none."
	}
	if bad > 0 {
		text += " *: not the link's time alone."
	}
	return text
}

// sessionTable is that of one service, and one of hhfr's modes or plain SOAP.
func sessionTable(cells []bench.Repeated, all []bench.BreakEven) report.Section {
	var sizes, counts []int
	var rivals []bench.SessionWay
	n := map[int]map[bench.SessionWay]int{}
	for _, c := range cells {
		sizes, counts = append(sizes, c.Size), append(counts, c.N)
	}
	for _, b := range all {
		if b.Service != cells[0].Service || b.Way != cells[0].Way {
			continue
		}
		if !slices.Contains(rivals, b.Against) {
			rivals = append(rivals, b.Against)
		}
		if n[b.Size] == nil {
			n[b.Size] = map[bench.SessionWay]int{}
		}
		n[b.Size][b.Against] = b.N
	}
	slices.Sort(sizes)
	slices.Sort(counts)
	sizes, counts = slices.Compact(sizes), slices.Compact(counts)
	g := &report.Grid{Head: []string{"items"}}
	if cells[0].Service == bench.FileService {
		g.Head[0] = "files"
	}
	for _, count := range counts {
		g.Head = append(g.Head, fmt.Sprintf("n = %d", count))
	}
	for _, rival := range rivals {
		g.Head = append(g.Head, "N "+rivalName(rival))
	}
	for _, size := range sizes {
		row := []string{strconv.Itoa(size)}
		for _, count := range counts {
			text := ""
			for _, c := range cells {
				if c.Size == size && c.N == count {
					text = cellText(c)
				}
			}
			row = append(row, text)
		}
		for _, rival := range rivals {
			text := ""
			if from, compared := n[size][rival]; compared {
				text = known("%.0f", float64(from))
			}
			row = append(row, text)
		}
		g.Rows = append(g.Rows, row)
	}
	return report.Section{Table: g}
}

// rivalName is short where SOAP is one of the usual, so that tables fit screens.
func rivalName(w bench.SessionWay) string {
	switch w {
	case bench.SOAPNew:
		return "new"
	case bench.SOAPKept:
		return "kept"
	case bench.SOAPKeptGzip:
		return "gzip"
	case bench.H2CQueued:
		return "h2"
	default:
		return string(w)
	}
}

// cellText is the time here, and in the paper.
func cellText(c bench.Repeated) string {
	text := report.Figure(c.Millis)
	if bench.HasInterval(c.Count) {
		text += " ±" + report.Figure((c.High-c.Low)/2)
	}
	if c.Bad > 0 {
		text += "*"
	}
	if c.Paper > 0 {
		text += fmt.Sprintf(" / %.0f", c.Paper)
	}
	return text
}

// overheadTable has the costs beside the messages, each by its repeats.
func overheadTable(list []bench.Overhead) []report.Section {
	if len(list) == 0 {
		return nil
	}
	type kind struct{ name, link string }
	var order []kind
	all := map[kind][]bench.Overhead{}
	for _, o := range list {
		c := kind{o.Name, o.Link}
		if all[c] == nil {
			order = append(order, c)
		}
		all[c] = append(all[c], o)
	}
	g := &report.Grid{Head: []string{"cost", "link", "ms / paper", "least", "most", "request / paper", "sent",
		"received", "compute ms"}}
	for _, c := range order {
		var ms []float64
		for _, o := range all[c] {
			ms = append(ms, o.Millis)
		}
		mid, _, _ := experiment.Median(ms)
		o := all[c][0]
		text, request := report.Figure(mid), known("%.0f", float64(o.Request))
		if o.Paper > 0 {
			text += fmt.Sprintf(" / %.0f", o.Paper)
		}
		if o.PaperReq > 0 {
			request += fmt.Sprintf(" / %d", o.PaperReq)
		}
		link := o.Link
		if link == "" {
			link = "network"
		}
		g.Rows = append(g.Rows, []string{
			o.Name, link, text, report.Figure(slices.Min(ms)), report.Figure(slices.Max(ms)), request,
			fmt.Sprint(o.Sent), fmt.Sprint(o.Received), known("%.3f", o.Compute),
		})
	}
	return []report.Section{{Title: "Costs beside the messages", Table: g,
		Text: "A header of 847 bytes set in a context store, and read (Oa), negotiation with a schema of 326 bytes " +
			"(Ob), and what the first message with a shape takes more than the second (Oc, with the computing time " +
			"of that shape). Medians of their repeats, and bytes of the first."}}
}

// modelTable has the papers' cost model, where explicit sessions were measured.
func modelTable(models []bench.Model) []report.Section {
	g := &report.Grid{Head: []string{"service", "items", "t1", "t1 queued", "t2 new", "t2 kept", "Ob", "N queued",
		"N new", "N kept", "N all"}}
	for _, m := range models {
		if m.Setup == 0 {
			continue
		}
		g.Rows = append(g.Rows, []string{m.Service, strconv.Itoa(m.Size), cost(m.T1), cost(m.T1Queued),
			cost(m.T2New), cost(m.T2Kept), cost(m.Setup),
			known("%.2f", m.BreakEvenQueued), known("%.2f", m.BreakEvenNew), known("%.2f", m.BreakEvenKept),
			known("%.2f", m.BreakEvenAll)})
		if m.PaperSetup > 0 {
			g.Rows = append(g.Rows, []string{"paper", strconv.Itoa(m.Size), "-", cost(m.PaperT1),
				cost(m.PaperT2), "-", cost(m.PaperSetup), known("%.2f", m.PaperBreakEven), "-", "-",
				known("%.2f", m.PaperBreakEven)})
		}
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return []report.Section{{Title: "The papers' cost model", Table: g,
		Text: "Milliseconds a message of explicit sessions, from sessions of all lengths (t1: hhfr, queued or " +
			"not; t2: SOAP on a connection for each and on one), before the first (Ob; the papers: Oa + Ob), " +
			"after how many messages hhfr is faster (N: queued against SOAP on a connection for each, as in the " +
			"papers; not queued against both; all: as N queued, with Oa and Oc added). -: not known."}}
}

// cost formats milliseconds that may not be known.
func cost(ms float64) string {
	if ms <= 0 {
		return "-"
	}
	return report.Figure(ms)
}

// sweepTable has the lines over sizes, and where they cross.
func sweepTable(list []bench.Sweep) []report.Section {
	if len(list) == 0 {
		return nil
	}
	g := &report.Grid{Head: []string{"service", "n", "hhfr", "p1", "p2", "SOAP", "p3", "p4",
		"items at the crossing / paper"}}
	for _, s := range list {
		text := "-"
		if s.Crossing >= 0 {
			text = fmt.Sprintf("%.1f", s.Crossing)
		}
		if s.Service == "sum" && s.N == 1 {
			text += " / 50 to 60"
		}
		g.Rows = append(g.Rows, []string{s.Service, strconv.Itoa(s.N), string(s.Way), fmt.Sprintf("%.3f", s.P1),
			fmt.Sprintf("%.1f", s.P2), string(s.Against), fmt.Sprintf("%.3f", s.P3), fmt.Sprintf("%.1f", s.P4), text})
	}
	return []report.Section{{Title: "Time over size", Table: g,
		Text: "The line y = p1 x + p2 of hhfr and y = p3 x + p4 of SOAP that is closest to the sessions of n " +
			"messages: y is their milliseconds, x the items in a message. Where the two lines cross hhfr begins " +
			"to be as fast; the paper has that for floats. 0: it is at all sizes; -: it is at none, or no " +
			"longer from there on."}}
}

// known formats a figure, or a dash for a missing one.
func known(format string, figure float64) string {
	if figure <= 0 {
		return "-"
	}
	return fmt.Sprintf(format, figure)
}
