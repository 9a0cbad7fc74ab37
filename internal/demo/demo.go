// Package demo is the tour of hhfr on one machine: a server, a client, a pair of proxies, a thin
// link between them, real messages, and what a capture of them shows.
package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Config configures the tour.
type Config struct {
	// Messages are sent to the echo service, some of them over the link. Required.
	Messages []TourMessage
	// Link is an emulated link as in the command line; empty: gprs.
	Link string
	// Speed is how many times faster than the link the clock runs; 0: what fits the link. Sessions
	// whose times are not those of the link alone are rerun, at half the speed and then a quarter
	// of it.
	Speed float64
	// Dir is the folder for captures, bytes of streams, and the store. Required; it is created if
	// need be.
	Dir string
	// Each and EachWay, if given, are called with every row and every way as it ends.
	Each    func(Row)
	EachWay func(SessionRun)

	// service answers the messages; zero: peer.Echo.
	service peer.Service
}

// TourReport is the result of the tour.
type TourReport struct {
	// Agreed are the facts of the session on loopback.
	Agreed negotiate.Facts
	// Rows are the costs of messages.
	Rows []Row
	// Sample is the number of messages that went over the link.
	Sample int
	// Ways are the sessions over the link.
	Ways []SessionRun

	link link.Profile
}

// Same reports whether every message came back as it was sent, and was found in the captures as it
// was sent.
func (r *TourReport) Same() bool {
	return !slices.ContainsFunc(r.Rows, func(row Row) bool { return !row.Same }) && !slices.ContainsFunc(r.Ways,
		func(w SessionRun) bool { return !w.Same })
}

const (
	// MaxOff is the maximum difference between a session's time and the time of its bytes and round
	// trips, as a share of that.
	MaxOff = 0.10
	// MaxCPU is the share of the link's time above which computing would distort the times.
	MaxCPU = 0.05
)

var (
	// ErrDifferent says that a message did not come back as it was sent, or is different in the
	// capture.
	ErrDifferent = errors.New("what came back, or what the captures show, is not what was sent")
	// ErrNotTheLink says that times are not those of the link alone, although sessions were rerun.
	ErrNotTheLink = errors.New("times that are not those of the link alone: this machine is too slow for the " +
		"clock, or too busy")
)

// tour is one run.
type tour struct {
	Config
	report *TourReport
	sent   []TourMessage // over the link
	met    *ends         // of the way Stream
}

// Run sends each message, and the next one of its kind, to the echo service over a stream on
// loopback; then some of them over an emulated link, by each of [Ways]; then reads the captures of
// that, and compares everything with what was sent. Errors: those of link.ParseProfile and
// link.Relay, without a report; ErrDifferent and ErrNotTheLink; that of a session.
func Run(ctx context.Context, cfg Config) (*TourReport, error) {
	if cfg.Link == "" {
		cfg.Link = "gprs"
	}
	profile, err := link.ParseProfile(cfg.Link)
	if err != nil {
		return nil, err
	}
	l, err := link.Relay(nil, profile)
	if err != nil {
		return nil, err
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	if cfg.Speed <= 0 {
		cfg.Speed = profile.Speed()
	}
	if cfg.service.Handler == nil {
		cfg.service = peer.Echo()
	}
	t := &tour{Config: cfg, sent: sample(cfg.Messages)}
	t.report = &TourReport{link: profile, Sample: len(t.sent), Ways: []SessionRun{}}
	for _, m := range t.sent[:t.report.Sample] {
		t.sent = append(t.sent, changed(m))
	}
	if err := t.costs(ctx); err != nil {
		return t.report, err
	}
	if err := errors.Join(t.ways(ctx), t.part()); err != nil {
		return t.report, err
	}
	return t.report, t.report.check()
}

// check returns what is wrong with the report.
func (r *TourReport) check() (err error) {
	if !r.Same() {
		err = ErrDifferent
	}
	for _, w := range r.Ways {
		if !w.Good() {
			err = errors.Join(err, fmt.Errorf("%s: %w", w.Name, ErrNotTheLink))
		}
	}
	return err
}

func newStore() ctxstore.Store { return memory.New(memory.Config{}) }

func codersOf(store ctxstore.Store) coders.Func {
	return coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))
}

func listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", "127.0.0.1:0")
}

// site is a server on a free port of the loopback, with a store of its own.
type site struct {
	hhfr.Server
	addr string
	done chan struct{} // closed when it no longer serves
	err  error         // the result of serving
}

// newSite starts one.
func (t *tour) newSite(ctx context.Context) (*site, error) {
	services, err := peer.NewServices(peer.ReadWhole(t.service))
	if err != nil {
		return nil, err
	}
	l, err := listen(ctx)
	if err != nil {
		return nil, err
	}
	s := &site{
		Server: hhfr.Server{Handler: services, Store: newStore()},
		addr:   l.Addr().String(),
		done:   make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		s.err = s.Serve(l)
	}()
	return s, nil
}

// url is the URL of the service at path.
func (s *site) url(path string) string { return "http://" + s.addr + path }

// stop ends the server. It is idempotent.
func (s *site) stop() error {
	err := s.Close()
	<-s.done
	return errors.Join(err, s.err)
}
