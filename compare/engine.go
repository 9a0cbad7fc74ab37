package main

import (
	"context"
	"runtime"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/facing"
)

// engineRow is the cost of a message of 45 bytes in the engine of reliable sequences, both peers
// together: exactly once, in order, each fiftieth datagram lost.
type engineRow struct {
	Messages int     `json:"messages"`
	Nanos    float64 `json:"ns"`
	Allocs   float64 `json:"allocs"`
}

// perSecond is the number of messages per second of a core.
func (e *engineRow) perSecond() float64 { return 1e9 / e.Nanos }

// measureEngine takes the median of rounds, in processor time.
func measureEngine(ctx context.Context) (*engineRow, error) {
	const rounds, each = 21, 50_000
	p, err := facing.New(arq.Config{Window: 4096, Datagram: 1472})
	if err != nil {
		return nil, err
	}
	p.Drop = 50
	message := make([]byte, 45)
	if err := p.Carry(message, each); err != nil {
		return nil, err
	}
	e := &engineRow{Messages: rounds * each}
	var times []float64
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		began := cpuTime()
		if err := p.Carry(message, each); err != nil {
			return nil, err
		}
		times = append(times, float64((cpuTime()-began).Nanoseconds())/each)
	}
	runtime.ReadMemStats(&after)
	e.Nanos = median(times)
	// whole numbers: what a run allocates once belongs to no message
	e.Allocs = float64((after.Mallocs - before.Mallocs) / uint64(e.Messages))
	return e, ctx.Err()
}

func (r *results) writeEngine(p *tablePrinter) {
	e := r.Engine
	if e == nil {
		return
	}
	p.printf("\n%d messages of 45 bytes between two engines of reliable sequences, exactly once, in order, each "+
		"fiftieth datagram lost: %.0f ns of processor time a message, both ends together, %.1f million a second; "+
		"%.0f allocations.\n",
		e.Messages, e.Nanos, e.perSecond()/1e6, e.Allocs)
}

func engineOf(of func(*engineRow) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		if r.Engine == nil {
			return 0, false
		}
		return of(r.Engine), true
	}
}
