// Package bench measures the savings of hhfr: [Session] repeats the papers' experiments on an
// emulated link.
package bench

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// SessionConfig selects the sessions to run. The zero value is the papers' experiment.
type SessionConfig struct {
	// Services are `concat` (tables 2 and 3 of paper 2), `sum` (tables 4 and 5), and `echo`, which
	// echoes messages of floats; nil: those of the papers.
	Services []string
	// Ways are how messages travel; nil: [UsualWays], or with udp those of them that can be, and
	// [Explicit].
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
	// Peer is an hhfr serve to measure with, over the network and in real time, without datagrams;
	// nil: a server of its own, beyond an emulated link. All is in TLS with an https URL, and
	// nothing with others.
	Peer *url.URL
	// TLS is the configuration for an https URL; nil: whom the system trusts.
	TLS *tls.Config
	// Repeat is how many times each session is run; 0: once.
	Repeat int
	// Overheads has the papers' costs beside the messages measured, as Explicit has, and the memory
	// of messages.
	Overheads bool
	// SweepSize has lines fitted to the times over the sizes of messages. It has sizes and a number
	// of messages of its own, where none are given.
	SweepSize bool
	// Messages are the requests of the service file, each a SOAP envelope; they are sent in turn.
	Messages [][]byte
	// Each, EachOverhead and EachMemory, if given, are called with all that was measured as it
	// ends. Their errors end the measurement.
	Each         func(Cell) error
	EachOverhead func(Overhead) error
	EachMemory   func(experiment.MemoryRow) error
	at           *sessionServer // the peer
	profile      link.Profile
}

// Results is the result of [Session].
type Results struct {
	Link      string `json:"link"`           // the profile; empty: the network to a peer
	Peer      string `json:"peer,omitempty"` // its URL
	Transport string `json:"transport"`      // of the streams
	// how many times faster than the link the clock ran, except in reruns
	Speed float64 `json:"speed"`
	// share of the run's time that this process computed; -1 if the system does not report it
	CPU        float64     `json:"cpu_share"`
	Cells      []Cell      `json:"cells"`       // the sessions, each repeat
	Models     []Model     `json:"models"`      // the papers' cost model, for each service and size
	BreakEvens []BreakEven `json:"break_evens"` // hhfr beside plain SOAP, by the sessions themselves
	// the papers' costs beside the messages, on this link and on a wired one
	Overheads []Overhead `json:"overheads"`
	// of messages of floats, if costs beside the messages were asked for
	Memory  []experiment.MemoryRow `json:"memory,omitempty"`
	Sweeps  []Sweep                `json:"sweeps,omitempty"`   // session time over size of messages, if asked for
	LeftOut []LeftOut              `json:"left_out,omitempty"` // what the peer does not have
}

var (
	// ErrNotTheLink says that times are not those of the link alone, although sessions were rerun.
	ErrNotTheLink = errors.New("times that are not those of the link alone: this machine is too slow for the " +
		"clock, or too busy")
)

// check validates the configuration before anything runs.
func (cfg SessionConfig) check() error {
	for _, service := range cfg.Services {
		if _, known := experiments[service]; !known || service == FileService && len(cfg.Messages) == 0 {
			return fmt.Errorf("%w: no service %q to measure, concat, sum and echo are", ErrConfig, service)
		}
	}
	for _, w := range cfg.Ways {
		m, err := w.manner()
		if err != nil {
			return err
		}
		if cfg.Transport == "udp" && (m.mode == negotiate.FirstCall || m.first().mode == negotiate.FirstCall) {
			return fmt.Errorf("%w: %s begins with a first call, which asks for no stream over udp; explicit does",
				ErrConfig, w)
		}
		if cfg.Peer != nil && m.tls != cfg.secure() {
			return fmt.Errorf("%w: %s at an %s URL; those in TLS are for https URLs, the others for http URLs",
				ErrConfig, w, cfg.Peer.Scheme)
		}
	}
	if cfg.secure() && cfg.Overheads {
		return fmt.Errorf("%w: the costs beside the messages are measured without TLS", ErrConfig)
	}
	if cfg.Repeat < 1 || cfg.Repeat > maxItems {
		return fmt.Errorf("%w: %d repeats, 1 to %d are possible", ErrConfig, cfg.Repeat, maxItems)
	}
	for _, n := range slices.Concat(cfg.Sizes, cfg.Counts) {
		if n < 1 || n > maxItems {
			return fmt.Errorf("%w: %d items or messages, 1 to %d are possible", ErrConfig, n, maxItems)
		}
	}
	for _, service := range cfg.Services {
		p := cfg.tables(service)
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

// complete replaces what was left out.
func (cfg *SessionConfig) complete() {
	switch {
	case len(cfg.Services) > 0:
	case len(cfg.Messages) > 0:
		cfg.Services = []string{FileService}
	default:
		cfg.Services = []string{"concat", "sum"}
	}
	switch {
	case len(cfg.Ways) > 0:
	case cfg.Transport == "udp":
		cfg.Ways = datagramWays
	case cfg.secure():
		cfg.Ways = secureWays
	default:
		cfg.Ways = UsualWays
	}
	cfg.Transport, cfg.Repeat = cmp.Or(cfg.Transport, "tcp"), cmp.Or(cfg.Repeat, 1)
	if cfg.Peer != nil {
		cfg.at = peerOf(cfg.Peer, cfg.TLS)
		cfg.Link, cfg.Speed = "", 1
	} else {
		cfg.Link = cmp.Or(cfg.Link, "14k4")
	}
}

// secure reports whether the peer is measured in TLS.
func (cfg *SessionConfig) secure() bool { return cfg.Peer != nil && cfg.Peer.Scheme == "https" }

// open finds the link.
func (cfg *SessionConfig) open() (err error) {
	if cfg.Peer != nil {
		return nil
	}
	if cfg.profile, err = link.ParseProfile(cfg.Link); err != nil {
		return err
	}
	if cfg.Transport == "tcp" && cfg.profile != cfg.profile.Reliable() {
		_, err := link.Relay(nil, cfg.profile) // returns why not
		return err
	}
	if cfg.Transport == "udp" {
		if err := cfg.profile.Carries(udp.DefaultDatagram); err != nil {
			return err
		}
	}
	if cfg.Speed == 0 {
		cfg.Speed = cfg.profile.Speed()
	}
	return nil
}

// sweptSizes are around the size at which the paper's lines cross for floats, 50 to 60.
var sweptSizes = []int{10, 25, 50, 100, 200, 400}

// tables are those of the papers for a service; the size of messages of files is how many
// there are.
func (cfg *SessionConfig) tables(service string) asInPaper {
	p := experiments[service]
	if cfg.SweepSize {
		p.sizes, p.counts = sweptSizes, []int{1}
	}
	if service == FileService {
		p.sizes = []int{len(cfg.Messages)}
	}
	return p
}

func (cfg *SessionConfig) trial(service string, way SessionWay, size, n int, there known) (*trial, error) {
	m, err := way.manner()
	s := &trial{service: service, files: cfg.Messages, size: size, n: n, way: way, manner: m,
		transport: cfg.Transport, there: there, speed: cfg.Speed, peer: cfg.at}
	s.on(cfg.profile)
	return s, err
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

// warmUp has a session of each kind, which does not count, before anything is measured. The first
// shows whether the peer is what was expected. HTTP/2 may be missing there: that is left out.
func (r *Results) warmUp(ctx context.Context, cfg *SessionConfig, there known) error {
	probe := FirstCall
	if cfg.secure() {
		probe = FirstCallTLS
	}
	for _, service := range cfg.Services {
		size := orElse(cfg.Sizes, cfg.tables(service).sizes)[0]
		for _, way := range append([]SessionWay{probe}, cfg.Ways...) {
			s, err := cfg.trial(service, way, size, 1, there)
			if err != nil {
				return err
			}
			if _, err = s.lived(ctx); ctx.Err() != nil {
				return context.Cause(ctx)
			}
			switch {
			case err != nil && s.manner.http2:
				r.LeftOut = append(r.LeftOut, LeftOut{string(way), err.Error()})
				cfg.Ways = slices.DeleteFunc(slices.Clone(cfg.Ways), func(w SessionWay) bool { return w == way })
			case err != nil:
				return fmt.Errorf("%s: %w: %s, %s: %w", cfg.Peer.Redacted(), ErrPeer, service, way, err)
			}
		}
	}
	return nil
}
