package main

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/hhfr/hhfr/compare/internal/ends"
)

// idleArg, with a name, an address and a folder behind it, makes this program a server with idle
// clients, or those.
const idleArg = "idle"

// idleWorkload are the messages that the sessions are used with.
const idleWorkload = "w5-headers"

func runIdle(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return errors.New(idleArg + " FOLDER NAME ADDRESS")
	}
	messages, err := findMessages(args[0], idleWorkload)
	if err != nil {
		return err
	}
	return ends.ServeIdle(ctx, args[1], args[2], messages, in, out)
}

func measureIdle(ctx context.Context, o options) ([]ends.IdleRow, error) {
	return ends.MeasureIdle(ctx, ends.IdleConfig{
		Config: ends.Config{Args: []string{idleArg, o.shared}, Idle: o.idle}, Sessions: o.sessions, Uses: 20,
	})
}

func (r *results) writeIdle(p *tablePrinter) {
	if len(r.Sessions) == 0 {
		return
	}
	p.printf("\n%d idle sessions at a server: resident memory of the server for each beyond the first, in KB, "+
		"2 s after one message, after 20 more of %s, and after %s without any. Before it is read, the server gives "+
		"back what it does not use. First: what the first sessions added together.\n\n",
		r.Sessions[0].Sessions, idleWorkload, r.Idle)
	t := cells{{"server", "first", "opened", "used", "idle", "goroutines", "open all, s", "close all, s"}}
	for _, s := range r.Sessions {
		t = append(t, []string{s.Host, number(s.First / 1e3), number(s.Opened / 1e3), number(s.Used / 1e3),
			number(s.Idle / 1e3), strconv.FormatFloat(s.Goroutines, 'f', 1, 64), ratio(s.Open / 1e9),
			ratio(s.Close / 1e9)})
	}
	p.table(t)
}

func idleOf(of func(ends.IdleRow) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		for _, s := range r.Sessions {
			if s.Host == ends.IdleHHFR {
				return of(s), true
			}
		}
		return 0, false
	}
}

// idleGoals limit what idle sessions cost.
func idleGoals() []goal {
	return []goal{
		{15, "idle sessions, KB each at the server", 12, false, idleOf(func(s ends.IdleRow) float64 {
			return s.Opened / 1e3
		})},
		{15, "idle sessions after use, KB more than before", 2, false, idleOf(func(s ends.IdleRow) float64 {
			return (s.Idle - s.Opened) / 1e3
		})},
		{15, "idle sessions, goroutines each at the server", 1.01, false, idleOf(func(s ends.IdleRow) float64 {
			return s.Goroutines
		})},
		{15, "idle sessions, s to open and close all", 15, false, idleOf(func(s ends.IdleRow) float64 {
			return (s.Open + s.Close) / 1e9
		})},
	}
}
