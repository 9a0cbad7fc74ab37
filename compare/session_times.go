package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/pkg/clock"
)

// entryRow is the way in: sessions of ten echoed floats, from their first connection on, on one
// link, in virtual time.
type entryRow struct {
	Link       string            `json:"link"`
	Cells      []bench.Cell      `json:"cells"`
	BreakEvens []bench.BreakEven `json:"break_evens"`
}

// entryCounts are the messages of sessions.
var entryCounts = []int{1, 2, 4, 8, 10, inFlight}

// inFlight are the messages of the longest sessions; queued ones have all in flight at once.
const inFlight = 100

// measureEntry runs sessions of all ways on the links.
func measureEntry(ctx context.Context, links []string) (list []entryRow, err error) {
	for _, name := range links {
		e := entryRow{Link: name}
		for _, way := range bench.Ways() {
			for _, n := range entryCounts {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				var c bench.Cell
				err := virtually(func() (err error) {
					// An outside context would be waited for.
					c, err = bench.Echo(context.Background(), clock.Real(), name, way, n)
					return err
				})
				if err != nil {
					return nil, fmt.Errorf("%s, %s, n = %d: %w", name, way, n, err)
				}
				e.Cells = append(e.Cells, c)
			}
		}
		e.BreakEvens = bench.BreakEvens(e.Cells)
		list = append(list, e)
	}
	return list, nil
}

// cell is a session; ok: it was measured.
func (e *entryRow) cell(way bench.SessionWay, n int) (c bench.Cell, ok bool) {
	for _, c := range e.Cells {
		if c.Way == way && c.N == n {
			return c, true
		}
	}
	return c, false
}

// figure is one of the sessions on a link; ok: they were measured.
type figure func(e *entryRow) (value float64, ok bool)

// toOther is the time of n messages one way, divided by that of another.
func toOther(way, other bench.SessionWay, n int) figure {
	return func(e *entryRow) (float64, bool) {
		ours, ok := e.cell(way, n)
		theirs, both := e.cell(other, n)
		return ours.Millis / theirs.Millis, ok && both
	}
}

// toLeast is the time of all messages in flight, divided by that of their bytes and the least round
// trips.
func toLeast(way bench.SessionWay) figure {
	return func(e *entryRow) (float64, bool) {
		c, ok := e.cell(way, inFlight)
		return c.Millis / c.Least, ok
	}
}

// breakEven is the number of messages from which a way is as fast as each of plain SOAP; more than
// the largest count if it never is.
func breakEven(way bench.SessionWay) figure {
	return func(e *entryRow) (most float64, ok bool) {
		for _, b := range e.BreakEvens {
			if b.Way != way {
				continue
			}
			if ok = true; b.N == 0 {
				b.N = inFlight + 1
			}
			most = max(most, float64(b.N))
		}
		return most, ok
	}
}

// worstOf is the maximum of a figure on links; none: on all.
func worstOf(of figure, links ...string) func(*results) (float64, bool) {
	return func(r *results) (worst float64, measured bool) {
		for i := range r.Entry {
			if len(links) > 0 && !slices.Contains(links, r.Entry[i].Link) {
				continue
			}
			if value, ok := of(&r.Entry[i]); ok {
				worst, measured = max(worst, value), true
			}
		}
		return worst, measured
	}
}

func (r *results) writeEntry(p *tablePrinter) {
	if len(r.Entry) == 0 {
		return
	}
	p.printf("\nThe way in: sessions of w2-10floats, which come back as they are, in milliseconds of the link, in " +
		"virtual time: no processor time is in them. New: a connection for each message; kept: one.\n")
	for i := range r.Entry {
		r.Entry[i].write(p)
	}
	p.printf("\nFrom how many messages on hhfr is as fast (against gzip: within 1 %%), and the time of %d to that of "+
		"plain SOAP. -: at none of these lengths.\n\n", inFlight)
	t := cells{{"way", "against"}}
	for i := range r.Entry {
		t[0] = append(t[0], r.Entry[i].Link, strconv.Itoa(inFlight))
	}
	for j, b := range r.Entry[0].BreakEvens {
		line := []string{string(b.Way), string(b.Against)}
		for i := range r.Entry {
			b := r.Entry[i].BreakEvens[j]
			n := "-"
			if b.N > 0 {
				n = strconv.Itoa(b.N)
			}
			line = append(line, n, ratio(b.Last))
		}
		t = append(t, line)
	}
	p.table(t)
}

// write prints the sessions on one link. Least is that of the longest.
func (e *entryRow) write(p *tablePrinter) {
	p.printf("\n%s\n\n", e.Link)
	t := cells{{"way"}}
	for _, n := range entryCounts {
		t[0] = append(t[0], strconv.Itoa(n))
	}
	t[0] = append(t[0], "sent, 1", "received, 1", fmt.Sprintf("sent, %d", inFlight),
		fmt.Sprintf("received, %d", inFlight), fmt.Sprintf("%d / least", inFlight))
	for _, way := range bench.Ways() {
		line := []string{string(way)}
		for _, n := range entryCounts {
			c, _ := e.cell(way, n)
			line = append(line, strconv.FormatFloat(c.Millis, 'f', 1, 64))
		}
		for _, n := range []int{1, inFlight} {
			c, _ := e.cell(way, n)
			line = append(line, strconv.FormatInt(c.Sent, 10), strconv.FormatInt(c.Received, 10))
		}
		least, _ := toLeast(way)(e)
		t = append(t, append(line, ratio(least)))
	}
	p.table(t)
}
