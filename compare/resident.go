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
