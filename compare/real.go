package main

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/hhfr/hhfr/compare/internal/real"
)

// measureReal runs cells of the list.
func measureReal(ctx context.Context, o options) (*real.Report, error) {
	cells, err := real.Cells(o.real)
	if err != nil {
		return nil, err
	}
	return real.Measure(ctx, cells)
}

func (r *results) writeReal(p *tablePrinter) {
	if r.Real == nil {
		return
	}
	p.printf("\nReal clients and servers over a link with a round trip of %v: bytes of payload, and packets that had "+
		"any, both directions, from the first byte of each way on. Tunnels have one window for all connections. "+
		"Per address: the pair with --client-per-address. Added: what the pair adds to a call, median.\n\n",
		real.RoundTrip)
	t := cells{{"conversation", "plain", "zlib tunnel", "zstd tunnel", "pair", "per address", "pair / zlib",
		"per address / zlib", "pair / zstd", "estimate / pair", "packets", "added, ms"}}
	for i := range r.Real.Cells {
		row := &r.Real.Cells[i]
		t = append(t, []string{row.String(), traffic(row.Direct), traffic(row.Zlib), traffic(row.Zstd),
			traffic(row.Pair), traffic(row.PerAddress),
			ratio(row.Pair.To(row.Zlib)), ratio(row.PerAddress.To(row.Zlib)),
			ratio(row.Pair.To(row.Zstd)), thousandths(row.Estimate.To(row.Pair)),
			thousandths(float64(row.Estimate.Packets) / float64(row.Pair.Packets)),
			strconv.FormatFloat(1e3*row.Added().Seconds(), 'f', 2, 64)})
	}
	p.table(t)
	p.printf("\nThe same calls by how client and server write them: bytes of payload of the pair, the largest of "+
		"%d runs.\n\n", real.Runs)
	t = cells{{"written", "idle", "under load", "under load / one write, idle"}}
	for _, w := range r.Real.Writings {
		t = append(t, []string{w.Name, strconv.FormatInt(w.Idle, 10), strconv.FormatInt(w.Loaded, 10),
			ratio(float64(w.Loaded) / float64(r.Real.Writings[0].Idle))})
	}
	p.table(t)
}

func thousandths(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

func traffic(t real.Traffic) string {
	if t.Payload == 0 {
		return "-"
	}
	return fmt.Sprintf("%d (%d)", t.Payload, t.Packets)
}

// cellFigure is a figure of a cell; 0 if it has none.
type cellFigure func(*real.Report, *real.Row) float64

// worstCell is the largest figure of cells.
func worstCell(figure cellFigure) func(*results) (float64, bool) {
	return func(r *results) (worst float64, measured bool) {
		if r.Real == nil {
			return 0, false
		}
		for i := range r.Real.Cells {
			worst = max(worst, figure(r.Real, &r.Real.Cells[i]))
		}
		return worst, worst > 0
	}
}

// callsToZlib is the payload of cells with so many calls to that of the zlib tunnel: of a pair that
// takes an address for a client where connections are closed.
func callsToZlib(least, most int, isNew bool) cellFigure {
	return func(_ *real.Report, r *real.Row) float64 {
		if r.Calls < least || r.Calls > most || isNew != (r.Content == real.New) {
			return 0
		}
		if r.Connections == real.Closed {
			return r.PerAddress.To(r.Zlib)
		}
		return r.Pair.To(r.Zlib)
	}
}

// closedToKept is what a connection for each call takes to a kept one.
func closedToKept(of func(*real.Row) real.Traffic) cellFigure {
	return func(all *real.Report, r *real.Row) float64 {
		if r.Connections != real.Closed {
			return 0
		}
		kept := r.Cell
		kept.Connections = real.Kept
		for i := range all.Cells {
			if all.Cells[i].Cell == kept {
				return of(r).To(all.Cells[i].Pair)
			}
		}
		return 0
	}
}

// estimateOff is how far the estimate is from the pair, the larger of both pairs.
func estimateOff(of func(real.Traffic) int64) cellFigure {
	return func(_ *real.Report, r *real.Row) float64 {
		off := func(estimate, pair real.Traffic) float64 {
			if of(pair) == 0 {
				return 0
			}
			return math.Abs(float64(of(estimate))/float64(of(pair)) - 1)
		}
		return max(off(r.Estimate, r.Pair), off(r.EstimatePerAddress, r.PerAddress))
	}
}

// worstWriting is the largest of all ways to write to the largest of one write.
func worstWriting(r *results) (worst float64, measured bool) {
	if r.Real == nil {
		return 0, false
	}
	for _, w := range r.Real.Writings {
		worst = max(worst, float64(max(w.Idle, w.Loaded))/float64(r.Real.Writings[0].Idle))
	}
	return worst, worst > 0
}

// realGoals limit the worst of the cells that were run.
func realGoals() []goal {
	const issue = 17
	return []goal{
		{issue, "real clients, 1 call, payload to a zlib tunnel", 0.9, false, worstCell(callsToZlib(1, 1, false))},
		{issue, "real clients, 5 and 20 calls, payload to a zlib tunnel", 0.7, false,
			worstCell(callsToZlib(5, 20, false))},
		{issue, "real clients, 200 calls, payload to a zlib tunnel", 0.5, false,
			worstCell(callsToZlib(200, 200, false))},
		{issue, "real clients, 200 calls, new content, payload to a zlib tunnel", 0.9, false,
			worstCell(callsToZlib(200, 200, true))},
		{issue, "real clients, a connection for each call to a kept one, by default", 1.2, false,
			worstCell(closedToKept(func(r *real.Row) real.Traffic { return r.Pair }))},
		{issue, "real clients, a connection for each call to a kept one, --client-per-address", 1.2, false,
			worstCell(closedToKept(func(r *real.Row) real.Traffic { return r.PerAddress }))},
		{issue, "real clients, estimate's payload, off by", 0.03, false,
			worstCell(estimateOff(func(t real.Traffic) int64 { return t.Payload }))},
		{issue, "real clients, estimate's packets, off by", 0.05, false,
			worstCell(estimateOff(func(t real.Traffic) int64 { return t.Packets }))},
		{issue, "ways to write a call, largest of all runs to one write", 1.1, false, worstWriting},
		{issue, "real clients, 20 and 200 calls, median that a pair adds to a call, ms", 3, false,
			worstCell(func(_ *real.Report, r *real.Row) float64 {
				if r.Calls < 20 { // the median of few is one of them
					return 0
				}
				return 1e3 * r.Added().Seconds()
			})},
	}
}
