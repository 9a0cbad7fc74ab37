// Package real has clients and servers of other people's SOAP stacks talk over a link that delays:
// as they are, through a pair of proxies, and through tunnels that compress all connections with
// one window. All of them are processes, and what goes over the link is counted there.
package real

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hhfr/hhfr/compare/internal/program"
)

// Row is what a cell took on the link, from the first byte of each way on.
type Row struct {
	Cell
	Direct Traffic `json:"direct"`
	Pair   Traffic `json:"pair"`
	// PerAddress is the pair with --client-per-address, where connections are closed.
	PerAddress Traffic `json:"pair_per_address,omitzero"`
	Zlib       Traffic `json:"zlib"`
	Zstd       Traffic `json:"zstd"`
	// Estimate, and that per address, are what hhfr estimate says of a recording of Direct.
	Estimate           Traffic `json:"estimate"`
	EstimatePerAddress Traffic `json:"estimate_per_address,omitzero"`
	// DirectTook and PairTook are medians of calls. The first call is left out if there are others.
	DirectTook time.Duration `json:"direct_took_ns"`
	PairTook   time.Duration `json:"pair_took_ns"`
}

// Added is what the pair adds to the time of a call, which may be below 0 where calls connect.
func (r *Row) Added() time.Duration { return r.PairTook - r.DirectTook }

// cellTime is how long a cell may take: programs that hang are ended.
const cellTime = 5 * time.Minute

// Report has all cells of a run, and what the ways to write take.
type Report struct {
	Cells    []Row     `json:"cells"`
	Writings []Writing `json:"writings"`
}

// Measure runs the cells, and the ways to write.
func Measure(ctx context.Context, cells []Cell) (r *Report, err error) {
	s, err := openStacks(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	dir, err := os.MkdirTemp("", "hhfr-real-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r = &Report{}
	for _, c := range cells {
		row, err := s.measure(ctx, c, filepath.Join(dir, "values"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		r.Cells = append(r.Cells, row)
	}
	r.Writings, err = s.measureWritings(ctx)
	return r, err
}

func (s *stacks) measure(ctx context.Context, c Cell, values string) (row Row, err error) {
	ctx, cancel := context.WithTimeout(ctx, cellTime)
	defer cancel()
	row.Cell = c
	if err := writeValues(values, c); err != nil {
		return row, err
	}
	server := s.servers[c.Server]
	var took time.Duration
	calls := func(host string) error {
		all, err := s.call(ctx, c, values, upstream(host)+server.path)
		took = median(all)
		return err
	}
	var captured bytes.Buffer
	o, err := openDirect(ctx, server.host, &captured)
	if row.Direct, err = through(ctx, o, err, calls); err != nil {
		return row, err
	}
	row.DirectTook = took
	o, err = s.openPair(ctx, server.host)
	if row.Pair, err = through(ctx, o, err, calls); err != nil {
		return row, fmt.Errorf("pair: %w", err)
	}
	row.PairTook = took
	if row.Estimate, err = estimated(ctx, captured.Bytes(), false); err != nil {
		return row, fmt.Errorf("estimate: %w", err)
	}
	if c.Connections == Closed {
		o, err = s.openPair(ctx, server.host, "--client-per-address")
		if row.PerAddress, err = through(ctx, o, err, calls); err != nil {
			return row, fmt.Errorf("pair per address: %w", err)
		}
		if row.EstimatePerAddress, err = estimated(ctx, captured.Bytes(), true); err != nil {
			return row, fmt.Errorf("estimate: %w", err)
		}
	}
	for _, way := range []struct {
		with string
		took *Traffic
	}{{"zlib", &row.Zlib}, {"zstd", &row.Zstd}} {
		o, err = openTunnel(ctx, server.host, way.with)
		if *way.took, err = through(ctx, o, err, calls); err != nil {
			return row, fmt.Errorf("%s tunnel: %w", way.with, err)
		}
	}
	return row, nil
}

// median leaves out the first, which has what a client does once.
func median(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took[min(1, len(took)-1):]))
	return sorted[len(sorted)/2]
}

// estimated is what an estimate says of pairs that meet for the first time.
func estimated(ctx context.Context, captured []byte, perAddress bool) (t Traffic, err error) {
	e, err := program.Estimate(ctx, captured, "wifi,rtt="+RoundTrip.String(), perAddress)
	w := program.Of(e.Total, program.FirstContact)
	return Traffic{Payload: int64(w.Payload()), Packets: int64(w.Packets)}, err
}
