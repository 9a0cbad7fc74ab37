package main

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/hhfr/hhfr/internal/workload"
)

// started is the begin of elapsed time.
var started = time.Now()

// blobOctets is the number of bytes that W4 carries as base64.
const blobOctets = 1 << 20

// speedRow is one workload: processor times per message, medians over all rounds, and ratios. Each
// ratio is the median of the ratios of single rounds: noise of the machine hits the contestants of
// a round alike.
type speedRow struct {
	Workload string             `json:"workload"`
	Octets   float64            `json:"octets"`
	Nanos    map[string]float64 `json:"ns_per_message"`
	// SplitToBare and the like are ratios of times: 2 is half the speed. For W4, bare is Go's
	// base64: decoding for split, encoding for join.
	SplitToBare float64 `json:"split_to_bare"`
	JoinToBare  float64 `json:"join_to_bare,omitempty"`
	JoinToSplit float64 `json:"join_to_split"`
	// EtreeToSplit and the like are how many times faster split is.
	EtreeToSplit     float64 `json:"etree_to_split"`
	EncodingToSplit  float64 `json:"encoding_xml_to_split"`
	TokenizerToSplit float64 `json:"tokenizer_to_split"`
	// LearnToEtree is the cost of a message of an unknown kind: learn, compile, split.
	LearnToEtree float64 `json:"learn_to_etree"`
	SplitAllocs  float64 `json:"split_allocs"`
	JoinAllocs   float64 `json:"join_allocs"`
	// PackedToSplit compares split and pack with split alone, UnpackedToJoin unpack and join with
	// join alone.
	PackedToSplit  float64 `json:"split_and_pack_to_split"`
	UnpackedToJoin float64 `json:"unpack_and_join_to_join"`
	PackAllocs     float64 `json:"pack_allocs"`
	UnpackAllocs   float64 `json:"unpack_allocs"`
	Room           room    `json:"stages_octets"`
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
		c, err := newContest(name, messages)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for round := range rounds {
			if err := c.round(ctx, round, slice); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		rows = append(rows, c.row())
	}
	return rows, nil
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
	r.SplitToBare, r.JoinToBare = c.ratio(split, bareSplit), c.ratio(join, bareJoin)
	r.JoinToSplit, r.LearnToEtree = c.ratio(join, split), c.ratio(learning, etreeParse)
	r.EtreeToSplit, r.EncodingToSplit, r.TokenizerToSplit = c.ratio(etreeParse, split), c.ratio(encodingXML, split),
		c.ratio(tokenizer, split)
	r.SplitAllocs, r.JoinAllocs = c.allocs(split), c.allocs(join)
	r.PackedToSplit, r.UnpackedToJoin = 1+c.ratio(pack, split), 1+c.ratio(unpack, join)
	r.PackAllocs, r.UnpackAllocs, r.Room = c.allocs(pack), c.allocs(unpack), c.room
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
	}) / float64(len(c.messages))
}
