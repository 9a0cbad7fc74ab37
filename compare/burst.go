package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/hhfr/hhfr/internal/bench"
	emulated "github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/clock"
)

// burstRow is the time of a hundred messages over UDP on a bad modem, divided by the time of their
// bytes and two round trips.
type burstRow struct {
	Link      string  `json:"link"`
	Runs      int     `json:"runs"`
	Median    float64 `json:"median"`
	Tail      float64 `json:"percentile_95"`
	Longest   float64 `json:"longest"`
	Datagrams float64 `json:"datagrams"`
}

// measureBurst runs several of them at once: they hardly compute, and the clock runs as fast as
// fits the link.
func measureBurst(ctx context.Context, runs int) (*burstRow, error) {
	const name, atOnce = "14k4,loss=5%", 8
	profile, err := emulated.ParseProfile(name)
	if err != nil {
		return nil, err
	}
	b := &burstRow{Link: name, Runs: runs}
	var mu sync.Mutex
	var ratios []float64
	var failed error
	seeds := make(chan uint64)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for seed := range seeds {
				r, err := bench.Burst(ctx, clock.Scaled(profile.Speed()), name, seed)
				mu.Lock()
				failed = errors.Join(failed, err)
				ratios = append(ratios, r.Ratio())
				b.Datagrams += float64(r.Datagrams) / float64(runs)
				mu.Unlock()
			}
		})
	}
	for seed := range uint64(runs) {
		seeds <- seed
	}
	close(seeds)
	wg.Wait()
	slices.Sort(ratios)
	b.Median, b.Tail, b.Longest = ratios[runs/2], ratios[runs*95/100], ratios[runs-1]
	return b, failed
}

func (r *results) writeBurst(p *tablePrinter) {
	b := r.Burst
	if b == nil {
		return
	}
	p.printf("\n100 messages of w2-10floats over UDP on %s, exactly once and in order, to the time of their bytes "+
		"and two round trips.\n\n", b.Link)
	p.table(cells{{"runs", "median", "95th percentile", "longest", "datagrams"},
		{strconv.Itoa(b.Runs), ratio(b.Median), ratio(b.Tail), ratio(b.Longest), number(b.Datagrams)}})
}

func burstOf(of func(*burstRow) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		if r.Burst == nil {
			return 0, false
		}
		return of(r.Burst), true
	}
}
