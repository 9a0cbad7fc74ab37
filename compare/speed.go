package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/hhfr/hhfr/pkg/workload"
)

// started is the begin of elapsed time.
var started = time.Now()

// blobOctets is the number of bytes that W4 carries as base64.
const blobOctets = 1 << 20

// speedRow is one workload: processor times per message, medians over all rounds, and ratios. Each
// ratio is the median of the ratios of single rounds: noise of the machine hits the contestants of
// a round alike. A message that is sent and received has both ends, and what the system does.
type speedRow struct {
	Workload string             `json:"workload"`
	Octets   float64            `json:"octets"`
	Nanos    map[string]float64 `json:"ns_per_message"`
	// ToEtree and the like are times of a message from end to end to those of others: 2 is half the
	// speed.
	ToEtree     float64 `json:"to_etree"`
	ToEncoding  float64 `json:"to_encoding_xml"`
	ToTokenizer float64 `json:"to_tokenizer"`
	ToBase64    float64 `json:"to_base64,omitempty"` // of W4
	// Allocs are those of both ends.
	Allocs float64 `json:"allocs"`
}

func measureSpeed(ctx context.Context, in *inputs, rounds int, slice time.Duration) (rows []speedRow, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one core: also for the garbage collector's share of the work
	all := map[string][][]byte{blobName: {workload.Blob(seed, blobOctets)}}
	var names []string
	for _, f := range folders {
		names = append(names, f.name)
		all[f.name] = in.workloads[f.name]
	}
	for _, name := range append(names, blobName) {
		messages := all[name]
		row, err := compete(ctx, name, messages, rounds, slice)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func compete(
	ctx context.Context, name string, messages [][]byte, rounds int, slice time.Duration,
) (row speedRow, err error) {
	c, err := newContest(ctx, name, messages)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for round := range rounds {
		if err := c.round(ctx, round, slice); err != nil {
			return row, err
		}
	}
	return c.row(), nil
}

// round gives every contestant its turn, each on the same messages, in an order that changes from
// round to round.
func (c *contest) round(ctx context.Context, round int, slice time.Duration) error {
	from := round * c.batch % len(c.messages)
	for i := range c.contestants {
		p := &c.contestants[(i+round)%len(c.contestants)]
		if err := ctx.Err(); err != nil {
			return err
		}
		slice := slice
		if p.garbage {
			slice *= 4 // long enough for the collector to run in it
		}
		ns, err := c.turn(p, from, slice)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		p.times = append(p.times, ns)
		if p.garbage {
			runtime.GC() // the next one must not collect its garbage
		}
	}
	return nil
}

// turn runs a contestant over the batch that begins at from, repeatedly for a slice of time; it
// returns nanoseconds of processor time per message.
func (c *contest) turn(p *contender, from int, slice time.Duration) (float64, error) {
	if err := p.run(from); err != nil { // into the caches
		return 0, err
	}
	began := cpuTime()
	for n := 1; ; n++ {
		for i := range c.batch {
			if err := p.run((from + i) % len(c.messages)); err != nil {
				return 0, err
			}
		}
		if p.settle != nil {
			if err := p.settle(); err != nil {
				return 0, err
			}
		}
		if took := cpuTime() - began; took >= slice {
			return float64(took.Nanoseconds()) / float64(n*c.batch), nil
		}
	}
}

func (c *contest) row() speedRow {
	r := speedRow{Workload: c.name, Octets: float64(total(c.messages)) / float64(len(c.messages)),
		Nanos: map[string]float64{}}
	for _, p := range c.contestants {
		r.Nanos[p.name] = median(p.times)
	}
	r.ToEtree, r.ToEncoding = c.ratio(sending, etreeParse), c.ratio(sending, encodingXML)
	r.ToTokenizer, r.ToBase64 = c.ratio(sending, tokenizer), c.ratio(sending, goBase64)
	r.Allocs = c.allocs(sending)
	return r
}

// find returns a contestant, nil if it is not in the contest.
func (c *contest) find(name string) *contender {
	for i := range c.contestants {
		if c.contestants[i].name == name {
			return &c.contestants[i]
		}
	}
	return nil
}

// ratio is the median over all rounds, 0 if one of the two is not in the contest.
func (c *contest) ratio(a, b string) float64 {
	p, q := c.find(a), c.find(b)
	if p == nil || q == nil {
		return 0
	}
	ratios := make([]float64, len(p.times))
	for i := range ratios {
		ratios[i] = p.times[i] / q.times[i]
	}
	return median(ratios)
}

// allocs counts allocations per message.
func (c *contest) allocs(name string) float64 {
	p := c.find(name)
	return testing.AllocsPerRun(3, func() {
		for i := range c.messages {
			_ = p.run(i) // it ran before without error
		}
		if p.settle != nil {
			_ = p.settle()
		}
	}) / float64(len(c.messages))
}
