// Package report makes tables and pictures of what was measured, with what the papers measured
// beside it.
package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/experiment"
)

// Measurement is one run of bench: what it measured, and where.
type Measurement struct {
	Name        string // of the file; with a number, if it has several runs
	Environment experiment.Environment
	Sessions    []experiment.SessionRow
	Overheads   []experiment.OverheadRow
	Memories    []experiment.MemoryRow
	Loads       []experiment.LoadRow
	Noise       *experiment.Noise
}

// Read reads the runs of a file. Errors are those of [experiment.Read].
func Read(name string, in io.Reader) (list []*Measurement, err error) {
	err = experiment.Read(in, func(r experiment.Measured) error {
		if r.Environment != nil {
			list = append(list, &Measurement{Name: name, Environment: *r.Environment})
			return nil
		}
		m := list[len(list)-1] // Read has had an environment before
		switch {
		case r.Session != nil:
			m.Sessions = append(m.Sessions, *r.Session)
		case r.Overhead != nil:
			m.Overheads = append(m.Overheads, *r.Overhead)
		case r.Memory != nil:
			m.Memories = append(m.Memories, *r.Memory)
		case r.Load != nil:
			m.Loads = append(m.Loads, *r.Load)
		case r.Noise != nil:
			m.Noise = r.Noise
		}
		return nil
	})
	if len(list) > 1 {
		for i, m := range list {
			m.Name = fmt.Sprintf("%s (run %d)", name, i+1)
		}
	}
	return list, err
}

// Section is a part of a report.
type Section struct {
	Title string   `json:"title"`
	Text  string   `json:"text,omitempty"`
	Table *Grid    `json:"table,omitempty"`
	Chart *Picture `json:"chart,omitempty"`
}

// Grid is a table: the first column says what a row is about.
type Grid struct {
	Head []string   `json:"head"`
	Rows [][]string `json:"rows"`
	Text []bool     `json:"text,omitempty"` // by column: anything in it is no number; for pages
}

// Picture is what a chart shows.
type Picture struct {
	Kind   string   `json:"kind"` // lines or bars
	X      string   `json:"x"`    // what stands across, with its unit
	Y      string   `json:"y"`    // what stands up, with its unit
	Log    bool     `json:"log"`  // both axes; of lines only
	Labels []string `json:"labels,omitempty"`
	Series []Series `json:"series"`
	Marks  []Pin    `json:"marks,omitempty"`
}

// Series is one line of a picture, or the bars of one color: then x is the number of a label.
type Series struct {
	Name   string       `json:"name"`
	Paper  bool         `json:"paper,omitempty"` // a paper's
	Points [][2]float64 `json:"points"`
}

// Pin is a place across that has a name.
type Pin struct {
	X    float64 `json:"x"`
	Name string  `json:"name"`
}

// Make makes the report of runs.
func Make(runs []*Measurement) []Section {
	list := []Section{machines(runs)}
	for _, m := range runs {
		begin := len(list)
		list = append(list, sessions(m)...)
		list = append(list, overheads(m)...)
		list = append(list, Memories(m.Memories)...)
		list = append(list, loads(m)...)
		if len(runs) > 1 {
			for i := range list[begin:] {
				list[begin+i].Title += " · " + m.Name
			}
		}
	}
	return list
}

// machines tells where the runs were made, and what disturbed them.
func machines(runs []*Measurement) Section {
	s := Section{Title: "Machines", Table: &Grid{Head: []string{"run", "", ""}}}
	for _, m := range runs {
		name := m.Name
		for _, fact := range [][2]string{
			{"started", m.Environment.Started.UTC().Format(time.RFC3339)},
			{"command", "hhfr " + strings.Join(m.Environment.Arguments, " ")},
			{"machine", computer(&m.Environment.Machine)},
			{"its state", state(&m.Environment.Machine)},
			{"peer", computer(m.Environment.Peer)},
			{"state of the peer", state(m.Environment.Peer)},
			{"noise", noise(m.Noise)},
		} {
			if fact[1] != "" {
				s.Table.Rows = append(s.Table.Rows, []string{name, fact[0], fact[1]})
				name = ""
			}
		}
	}
	return s
}

// computer says what does not change.
func computer(c *experiment.Computer) string {
	if c == nil {
		return ""
	}
	parts := []string{c.Model, c.Processor, fmt.Sprintf("%d processors", c.Processors)}
	if c.MaxMHz > 0 {
		parts = append(parts, fmt.Sprintf("up to %.0f MHz", c.MaxMHz))
	}
	if c.MemoryOctets > 0 {
		parts = append(parts, fmt.Sprintf("%.1f GB", float64(c.MemoryOctets)/1e9))
	}
	parts = append(parts, c.System, c.Kernel, "hhfr "+c.Program, c.Go)
	return told(parts)
}

// state says what does.
func state(c *experiment.Computer) string {
	if c == nil {
		return ""
	}
	var parts []string
	if c.MHz > 0 {
		parts = append(parts, fmt.Sprintf("%.0f MHz", c.MHz))
	}
	if c.Celsius != nil {
		parts = append(parts, fmt.Sprintf("%.0f °C", *c.Celsius))
	}
	if c.BatteryPercent != nil {
		charging := ""
		if c.Charging != nil && *c.Charging {
			charging = ", charging"
		}
		parts = append(parts, fmt.Sprintf("battery %.0f %%%s", *c.BatteryPercent, charging))
	}
	if c.LoadAverage != nil {
		parts = append(parts, fmt.Sprintf("load %.2f", *c.LoadAverage))
	}
	return told(parts)
}

func noise(n *experiment.Noise) string {
	if n == nil {
		return "not known: the run did not come to its end"
	}
	var parts []string
	if n.Pauses > 0 {
		parts = append(parts, fmt.Sprintf("stood still %d times, %.0f ms at most", n.Pauses, n.LongestMillis))
	}
	if n.ClockJumpMillis != 0 {
		parts = append(parts, fmt.Sprintf("the clock was set by %.0f ms", n.ClockJumpMillis))
	}
	if n.OthersShare >= 0 {
		parts = append(parts, fmt.Sprintf("others took %.0f %% of the processors", 100*n.OthersShare))
	}
	if n.Celsius != nil {
		parts = append(parts, fmt.Sprintf("%.0f °C at the end", *n.Celsius))
	}
	if len(parts) == 0 {
		return "none seen"
	}
	return told(parts)
}

// told joins what is known.
func told(parts []string) string {
	var known []string
	for _, p := range parts {
		if p != "" {
			known = append(known, p)
		}
	}
	return strings.Join(known, ", ")
}

// Figure is a number in a table: with three digits at least, and no decimals that nobody measures.
func Figure(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// spread prints a median with what its interval is wider by, to the farther side.
func spread(mid, low, high float64) string {
	if high <= low || mid <= 0 {
		return Figure(mid)
	}
	return fmt.Sprintf("%s ± %.0f %%", Figure(mid), 100*max(high-mid, mid-low)/mid)
}
