package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// Session runs the sessions, one after the other, and reports; after a failure it returns the
// report so far. The server is in the same process, at the far end of the link, or a peer. Errors:
// ErrConfig, ErrPeer, those of link.ParseProfile, link.Relay and Carries, without a report;
// ErrNotTheLink; that of a session.
func Session(ctx context.Context, cfg SessionConfig) (*Results, error) {
	cfg.complete()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := cfg.open(); err != nil {
		return nil, err
	}
	r := &Results{Link: cfg.Link, Transport: cfg.Transport, Speed: cfg.Speed, CPU: -1, Cells: []Cell{},
		Models: []Model{}, BreakEvens: []BreakEven{}, Overheads: []Overhead{}}
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	there := newKnown(store)
	if cfg.Peer != nil {
		r.Peer = cfg.Peer.Redacted()
		if err := r.warmUp(ctx, &cfg, there); err != nil {
			return nil, err
		}
	}
	if err := r.measureOverheads(ctx, &cfg); err != nil {
		return r, err
	}
	var err error
	began, used := time.Now(), clock.Processor()
	for _, service := range cfg.Services {
		if err = r.live(ctx, &cfg, service, there); err != nil {
			break
		}
	}
	if used >= 0 {
		r.CPU = float64(clock.Processor()-used) / float64(time.Since(began))
	}
	if err == nil {
		err = r.check()
	}
	return r, err
}

// live runs the sessions of one service. Repeats of a session do not follow each other: what
// disturbs them for a while then disturbs others as well.
func (r *Results) live(ctx context.Context, cfg *SessionConfig, service string, there known) error {
	p, begun := cfg.tables(service), len(r.Cells)
	for _, size := range orElse(cfg.Sizes, p.sizes) {
		first := len(r.Cells)
		for repeat := range cfg.Repeat {
			for _, way := range cfg.Ways {
				for _, n := range orElse(cfg.Counts, p.counts) {
					s, err := cfg.trial(service, way, size, n, there)
					if err != nil {
						return err
					}
					if !s.manner.hhfr() && s.profile != s.profile.Reliable() {
						continue
					}
					c, err := s.lived(ctx)
					if err != nil {
						return fmt.Errorf("%s(%d), %s, n = %d: %w", service, size, way, n, err)
					}
					c.Paper, c.Repeat = paperTime(service, way, size, n), repeat+1
					r.Cells = append(r.Cells, c)
					if cfg.Each != nil {
						if err := cfg.Each(c); err != nil {
							return err
						}
					}
				}
			}
		}
		if cells := r.Cells[first:]; len(cells) > 0 {
			cells = typical(cells)
			m := model(cells, p.costs[size])
			m.add(r.Overheads, r.Link)
			r.Models = append(r.Models, m)
			r.BreakEvens = append(r.BreakEvens, BreakEvens(cells)...)
		}
	}
	if cells := typical(r.Cells[begun:]); cfg.SweepSize && len(cells) > 0 {
		r.Sweeps = append(r.Sweeps, sweeps(cells, orElse(cfg.Counts, p.counts))...)
	}
	return nil
}

// measureOverheads adds the costs beside the messages, where those of the papers are compared.
func (r *Results) measureOverheads(ctx context.Context, cfg *SessionConfig) error {
	if !cfg.Overheads && !slices.Contains(cfg.Ways, Explicit) {
		return nil
	}
	names := []string{cfg.Link}
	if cfg.Peer == nil {
		names = append(names, Wired)
	}
	for _, name := range names {
		if err := r.overheads(ctx, cfg, name); err != nil {
			return fmt.Errorf("costs beside the messages: %w", err)
		}
	}
	if !cfg.Overheads {
		return nil
	}
	return r.memory(ctx, cfg)
}
