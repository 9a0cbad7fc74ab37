// Package bench measures the savings of hhfr: [Session] repeats the papers' experiments on an
// emulated link.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// SessionConfig selects the sessions to run. The zero value is the papers' experiment.
type SessionConfig struct {
	// Services are `concat` (tables 2 and 3 of paper 2), `sum` (tables 4 and 5), and `echo`, which
	// echoes messages of floats; nil: those of the papers.
	Services []string
	// Ways are how messages travel; nil: [PaperWays].
	Ways []SessionWay
	// Sizes are items in a message, Counts messages in a session; nil: those of the papers for each
	// service.
	Sizes, Counts []int
	// Link is an emulated link as in the command line; empty: 14k4. Impairments that only datagrams
	// survive (loss, reordering) are for udp.
	Link string
	// Transport is the transport of streams: tcp or udp; empty: tcp. With udp the negotiation and
	// plain SOAP stay on TCP, on the same link without loss. If it has any, plain SOAP is left out:
	// an emulated TCP loses nothing.
	Transport string
	// Speed is how many times faster than the link the clock runs, below 1 for slow motion; 0: what
	// fits the link, 20 at most. Sessions whose times are not those of the link alone are rerun, at
	// half the speed and then a quarter of it.
	Speed float64
	// Each, if given, is called with every cell as it ends.
	Each func(Cell)
}

// Results is the result of [Session].
type Results struct {
	Link      string `json:"link"`      // the profile
	Transport string `json:"transport"` // of the streams
	// how many times faster than the link the clock ran, except in reruns
	Speed float64 `json:"speed"`
	// share of the run's time that this process computed; -1 if the system does not report it
	CPU        float64     `json:"cpu_share"`
	Cells      []Cell      `json:"cells"`       // the sessions
	Models     []Model     `json:"models"`      // the papers' cost model, for each service and size
	BreakEvens []BreakEven `json:"break_evens"` // hhfr beside plain SOAP, by the sessions themselves
	// the papers' costs beside the messages, on this link and on a wired one
	Overheads []Overhead `json:"overheads"`
}

const (
	// MaxCPU is the share of the link's time above which computing would distort the times.
	MaxCPU = 0.05
	// MaxOff is the maximum difference between a session's time and the time of its bytes and round
	// trips, as a share of that.
	MaxOff = 0.10
)

var (
	// ErrNotTheLink says that times are not those of the link alone, although sessions were rerun.
	ErrNotTheLink = errors.New("times that are not those of the link alone: this machine is too slow for the " +
		"clock, or too busy")
	// ErrConfig says that there is no such experiment.
	ErrConfig = errors.New("no such experiment")
)

// check validates the configuration before anything runs.
func (cfg SessionConfig) check() error {
	for _, service := range cfg.Services {
		if _, known := papers[service]; !known {
			return fmt.Errorf("%w: no service %q to measure, concat, sum and echo are", ErrConfig, service)
		}
	}
	for _, w := range cfg.Ways {
		if _, err := w.manner(); err != nil {
			return err
		}
	}
	for _, n := range slices.Concat(cfg.Sizes, cfg.Counts) {
		if n < 1 || n > maxItems {
			return fmt.Errorf("%w: %d items or messages, 1 to %d are possible", ErrConfig, n, maxItems)
		}
	}
	for _, service := range cfg.Services {
		p := papers[service]
		if size, n := slices.Max(orElse(cfg.Sizes, p.sizes)),
			slices.Max(orElse(cfg.Counts, p.counts)); n > maxItems/size {
			return fmt.Errorf("%w: %d times %d items in a session, %d are possible", ErrConfig, n, size, maxItems)
		}
	}
	if cfg.Transport != "tcp" && cfg.Transport != "udp" {
		return fmt.Errorf("%w: no transport %q to measure, tcp and udp are", ErrConfig, cfg.Transport)
	}
	if !(cfg.Speed >= 0 && cfg.Speed <= maxSpeed) {
		return fmt.Errorf("%w: a clock %v times faster, 0 to %d are possible", ErrConfig, cfg.Speed, maxSpeed)
	}
	return nil
}

const (
	// maxSpeed is far beyond any machine's ability.
	maxSpeed = 10_000
	// maxItems bounds the items of all messages of a session, which is held in memory: some tens of
	// megabytes.
	maxItems = 1_000_000
)

// Session runs the sessions, one after the other, and reports; after a failure it returns the
// report so far. The server is in the same process, at the far end of the link. Errors: ErrConfig,
// those of link.ParseProfile, link.Relay and Carries, without a report; ErrNotTheLink; that of a
// session.
func Session(ctx context.Context, cfg SessionConfig) (*Results, error) {
	if len(cfg.Services) == 0 {
		cfg.Services = []string{"concat", "sum"}
	}
	if cfg.Link == "" {
		cfg.Link = "14k4"
	}
	if len(cfg.Ways) == 0 {
		cfg.Ways = PaperWays
	}
	cfg.Transport = cmp.Or(cfg.Transport, "tcp")
	if err := cfg.check(); err != nil {
		return nil, err
	}
	profile, err := link.ParseProfile(cfg.Link)
	if err != nil {
		return nil, err
	}
	if cfg.Transport == "tcp" && profile != profile.Reliable() {
		_, err := link.Relay(nil, profile) // returns why not
		return nil, err
	}
	if cfg.Transport == "udp" {
		if err := profile.Carries(udp.DefaultDatagram); err != nil {
			return nil, err
		}
	}
	if cfg.Speed == 0 {
		cfg.Speed = profile.Speed()
	}
	r := &Results{Link: cfg.Link, Transport: cfg.Transport, Speed: cfg.Speed, CPU: -1, Cells: []Cell{},
		Models: []Model{}, BreakEvens: []BreakEven{}, Overheads: []Overhead{}}
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	there := newKnown(store)
	if err := r.measureOverheads(ctx, cfg); err != nil {
		return r, err
	}
	began, used := time.Now(), clock.Processor()
	for _, service := range cfg.Services {
		if err = r.live(ctx, cfg, service, there, profile); err != nil {
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

// live adds the cells and models of one service.
func (r *Results) live(
	ctx context.Context,
	cfg SessionConfig,
	service string,
	there known,
	profile link.Profile,
) error {
	p := papers[service]
	for _, size := range orElse(cfg.Sizes, p.sizes) {
		first := len(r.Cells)
		for _, way := range cfg.Ways {
			m, err := way.manner()
			if err != nil {
				return err
			}
			if !m.hhfr() && profile != profile.Reliable() {
				continue
			}
			for _, n := range orElse(cfg.Counts, p.counts) {
				s := trial{service: service, size: size, n: n, way: way, manner: m, transport: cfg.Transport,
					there: there, speed: cfg.Speed, profile: profile}
				c, err := s.lived(ctx)
				if err != nil {
					return fmt.Errorf("%s(%d), %s, n = %d: %w", service, size, way, n, err)
				}
				c.Paper = p.time(way, size, n)
				if r.Cells = append(r.Cells, c); cfg.Each != nil {
					cfg.Each(c)
				}
			}
		}
		if cells := r.Cells[first:]; len(cells) > 0 {
			m := model(cells, p.costs[size])
			m.add(r.Overheads, r.Link)
			r.Models = append(r.Models, m)
			r.BreakEvens = append(r.BreakEvens, BreakEvens(cells)...)
		}
	}
	return nil
}

// measureOverheads adds the costs beside the messages, where those of the papers are compared.
func (r *Results) measureOverheads(ctx context.Context, cfg SessionConfig) error {
	if !slices.Contains(cfg.Ways, Explicit) {
		return nil
	}
	for _, name := range []string{cfg.Link, Wired} {
		rows, err := overheads(ctx, name)
		if err != nil {
			return fmt.Errorf("costs beside the messages: %w", err)
		}
		r.Overheads = append(r.Overheads, rows...)
	}
	return nil
}

// check counts the cells that are not good.
func (r *Results) check() error {
	bad := 0
	for _, c := range r.Cells {
		if !c.Good() {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%w (%d of %d sessions)", ErrNotTheLink, bad, len(r.Cells))
	}
	return nil
}

func orElse(list, standard []int) []int {
	if len(list) > 0 {
		return list
	}
	return standard
}
