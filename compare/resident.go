package main

import (
	"context"
	"strconv"

	"github.com/hhfr/hhfr/compare/internal/ends"
)

// measureResident measures commands with one session, a tenth of all, and all.
func measureResident(ctx context.Context, o options) ([]ends.ResidentRow, error) {
	messages, err := findMessages(o.shared, idleWorkload)
	if err != nil {
		return nil, err
	}
	return ends.MeasureResident(ctx, ends.IdleConfig{Config: ends.Config{Idle: o.idle}, Uses: 20},
		[]int{1, max(o.sessions/10, 2), o.sessions}, messages)
}

func (r *results) writeResident(p *tablePrinter) {
	if len(r.Resident) == 0 {
		return
	}
	p.printf("\nResident memory of commands as the system shows it, in MB: with sessions that have had a message of "+
		"%s and were idle since, and the most while they are used, 20 times each.\n\n", idleWorkload)
	t := cells{{"command", "sessions", "idle", "busy"}}
	for _, row := range r.Resident {
		t = append(t, []string{row.Command, strconv.Itoa(row.Sessions), megabytes(row.Idle), megabytes(row.Busy)})
	}
	p.table(t)
}

// residentOfSession is what each session beyond the first takes of `hhfr serve` that rests, in KB.
func residentOfSession(r *results) (kb float64, measured bool) {
	var first, last ends.ResidentRow
	for _, row := range r.Resident {
		if row.Command != ends.ServeCommand {
			continue
		}
		if first.Sessions == 0 {
			first = row
		}
		last = row
	}
	if last.Sessions == first.Sessions {
		return 0, false
	}
	return (last.Idle - first.Idle) / 1e3 / float64(last.Sessions-first.Sessions), true
}

func residentGoals() []goal {
	return []goal{{31, "serve, a used session at rest, resident KB", 16, false, residentOfSession}}
}
