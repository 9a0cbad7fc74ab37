package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/compare/internal/real"
)

// realOf has a cell of each kind, which meet all goals.
func realOf() *real.Report {
	cell := func(connections string, calls int, content string, pair, zlib int64) real.Row {
		r := real.Row{
			Cell: real.Cell{Client: "zeep", Server: "cxf", Connections: connections, Calls: calls, Content: content},
			Pair: real.Traffic{Payload: pair, Packets: 10}, Zlib: real.Traffic{Payload: zlib},
			Estimate: real.Traffic{Payload: pair, Packets: 10},
		}
		if connections == real.Closed {
			r.PerAddress, r.EstimatePerAddress = r.Pair, r.Estimate
		}
		return r
	}
	return &real.Report{
		Cells: []real.Row{
			cell(real.Kept, 1, real.Readings, 90, 100), cell(real.Kept, 20, real.Readings, 700, 1000),
			cell(real.Closed, 20, real.Readings, 840, 1200), cell(real.Kept, 200, real.Mixed, 5000, 10_000),
			cell(real.Kept, 200, real.New, 90_000, 100_000),
		},
		Writings: []real.Writing{
			{Name: "one write", Idle: 100, Loaded: 101}, {Name: "in chunks", Idle: 110, Loaded: 110},
		},
	}
}

// Each goal is about the worst of its cells.
func TestRealGoals(t *testing.T) {
	missed := func(more func(*real.Report)) (list []string) {
		r := newReport(few())
		r.Real = realOf()
		more(r.Real)
		r.judge()
		for _, v := range r.Goals {
			if !v.Met {
				list = append(list, v.Goal)
			}
		}
		assert.Len(t, list, r.missed(), "a miss fails the run")
		return list
	}
	assert.Empty(t, missed(func(*real.Report) {}))
	for want, more := range map[string]func(*real.Report){
		"real clients, 1 call, payload to a zlib tunnel": func(r *real.Report) {
			r.Cells[0].Zlib.Payload--
		},
		"real clients, 5 and 20 calls, payload to a zlib tunnel": func(r *real.Report) {
			r.Cells[1].Zlib.Payload--
		},
		"real clients, 200 calls, payload to a zlib tunnel": func(r *real.Report) {
			r.Cells[3].Zlib.Payload--
		},
		"real clients, 200 calls, new content, payload to a zlib tunnel": func(r *real.Report) {
			r.Cells[4].Zlib.Payload--
		},
		"real clients, a connection for each call to a kept one, by default": func(r *real.Report) {
			r.Cells[2].Pair.Payload++
			r.Cells[2].Estimate.Payload++
		},
		"real clients, estimate's payload, off by": func(r *real.Report) {
			r.Cells[3].Estimate.Payload = 5151
		},
		"real clients, estimate's packets, off by": func(r *real.Report) {
			r.Cells[2].EstimatePerAddress.Packets = 9
		},
		"ways to write a call, largest of all runs to one write": func(r *real.Report) {
			r.Writings[1].Loaded = 111
		},
		"real clients, 20 and 200 calls, median that a pair adds to a call, ms": func(r *real.Report) {
			r.Cells[1].PairTook = 3001 * time.Microsecond
		},
	} {
		assert.Equal(t, []string{want}, missed(more))
	}
	r := newReport(few())
	r.judge()
	for _, v := range r.Goals {
		assert.NotContains(t, v.Goal, "real clients", "not measured, not judged")
	}
}

func TestRealReport(t *testing.T) {
	text := textOf(t, func(r *results) { r.Real = realOf() })
	assert.Contains(t, text, "| zeep to cxf, closed, 20 calls, readings ")
	assert.Contains(t, text, "| in chunks ")
	var out, errs bytes.Buffer
	assert.Equal(t, exitFailed, run(t.Context(), []string{"-only", "real", "-real", "netcat"}, &out, &errs))
	assert.Contains(t, errs.String(), `no cell "netcat"`)
}
