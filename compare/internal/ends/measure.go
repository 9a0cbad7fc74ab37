package ends

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Outcome is what one way took; nanoseconds per message are medians over all turns.
type Outcome struct {
	Way       string  `json:"way"`
	Kind      Kind    `json:"kind"`
	Processor float64 `json:"processor_ns"`
	Time      float64 `json:"time_ns"`
	// Used and Idle are the resident memory of both ends in one process, in bytes, after the last
	// turn and when nothing has happened for Config.Idle.
	Used float64 `json:"resident_used"`
	Idle float64 `json:"resident_idle"`
}

// Config says how long is measured.
type Config struct {
	// Args are the arguments with which this program is the contestant whose name follows them.
	Args   []string
	Rounds int
	Slice  time.Duration
	// Idle is how long nothing happens before the memory is read again.
	Idle time.Duration
}

// Measure lets all ways take turns.
func Measure(ctx context.Context, cfg Config) (rows []Outcome, err error) {
	var all []*process
	defer func() {
		for _, p := range all {
			err = errors.Join(err, p.stop())
		}
	}()
	for _, w := range ways {
		p, err := start(ctx, w.name, 1, append(slices.Clone(cfg.Args), w.name)...)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	processor, took := make([][]float64, len(ways)), make([][]float64, len(ways))
	for round := range cfg.Rounds + 1 {
		for i, p := range all {
			a, err := p.ask(command{Least: cfg.Slice})
			if err != nil {
				return nil, err
			}
			if round > 0 { // the first warms up
				processor[i], took[i] = append(processor[i], a.Processor), append(took[i], a.Time)
			}
		}
	}
	for i, w := range ways {
		rows = append(rows, Outcome{
			Way: w.name, Kind: w.kind, Processor: median(processor[i]), Time: median(took[i]),
			Used: all[i].resident(),
		})
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(cfg.Idle):
	}
	for i := range rows {
		rows[i].Idle = all[i].resident()
	}
	return rows, nil
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
