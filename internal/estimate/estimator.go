package estimate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/pkg/soap"
)

// estimator reads the captures twice: for all ways of which the traffic shows what they take, and
// then for those of pairs that have seen it.
type estimator struct {
	cfg    Config
	ctx    context.Context
	report *Report

	numbers    map[soap.Name]int // of operations
	operations []operationState
	servers    map[netip.AddrPort]*called
	called     []*called // the same, in order
	between    [ways]traffic
	opening    [ways]traffic         // a part of between
	byLength   map[int][ways]traffic // of openings, by the length of the server's address
	rivals     *rivals
	sum        [ways]traffic // so far
	halves     halves
	results    [][]*virtualLink // by link and way

	// Of one pass:
	again    bool
	channels []uint16 // of tunnels, that are free again
	highest  uint16   // of them
	reader   *callReader
	networks []*virtualLink
	serial   int
	clients  map[callerHost]*lastReplies
}

// callerHost is a host that calls a server.
type callerHost struct {
	host   netip.Addr
	server netip.AddrPort
}

// read reads the captures once: first for all ways but those that met before, and then for these.
func (e *estimator) read(inputs []Capture) (flow.Stats, error) {
	e.serial, e.clients, e.networks = 0, map[callerHost]*lastReplies{}, nil
	for _, profile := range e.cfg.Links {
		if e.again {
			break
		}
		var of []*virtualLink
		for w := range anew {
			n, err := newNetwork(w, profile, cmp.Or(e.cfg.mostBehind, mostBehind))
			if err != nil {
				return flow.Stats{}, err
			}
			of = append(of, n)
		}
		e.results, e.networks = append(e.results, of), append(e.networks, of...)
	}
	e.reader = &callReader{call: e.call, ended: e.ended}
	files, err := e.open(inputs)
	if err != nil {
		return flow.Stats{}, err
	}
	stats, err := e.reader.read(files)
	err = cmp.Or(err, context.Cause(e.ctx))
	if err == nil {
		err = e.lastEnds()
	}
	for _, n := range e.networks {
		n.finish()
	}
	return stats, err
}

// open opens the captures at their beginnings.
func (e *estimator) open(inputs []Capture) (files []*flow.File, err error) {
	for _, in := range inputs {
		var f *flow.File
		_, err := in.Octets.Seek(0, io.SeekStart)
		if err == nil {
			f, err = flow.Open(in.Octets)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Name, err)
		}
		files = append(files, f)
	}
	return files, nil
}

// meetAgain has all pairs meet again.
func (e *estimator) meetAgain() (err error) {
	e.again = true
	for _, s := range e.called {
		for of, w := range map[int]int{firstContact: metBefore, byConnection: byConnectionMet} {
			if s.pairs[w], err = s.pairs[of].again(e.reader.begun); err != nil {
				return err
			}
			s.pairs[of] = nil
		}
	}
	r := e.report
	r.Began, r.Seconds = e.reader.begun, e.reader.now.Sub(e.reader.begun).Seconds()
	r.Servers, r.Messages, r.Others, r.Cut, r.HHFR = len(e.servers), 2*r.Calls, e.reader.others,
		e.reader.cut, e.reader.hhfr
	return nil
}

func (e *estimator) close() {
	for _, s := range e.called {
		for _, store := range s.stores {
			_ = store.Close() // in memory
		}
	}
}

// operationState is what is known of one.
type operationState struct {
	name  soap.Name
	calls int
	took  time.Duration
	ways  [ways]traffic
}
