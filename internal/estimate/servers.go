package estimate

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// called is a server that is called, and the pairs in front of it.
type called struct {
	number int
	stores []ctxstore.Store
	pairs  [ways]*pair
}

// server returns the server at an address.
func (e *estimator) server(addr netip.AddrPort) (*called, error) {
	if s := e.servers[addr]; s != nil {
		return s, nil
	}
	if len(e.servers) == mostServers {
		return nil, ErrManyServers
	}
	s := &called{number: len(e.servers)}
	e.servers[addr], e.called = s, append(e.called, s)
	opening, err := e.openings(addr.String())
	if err != nil {
		return nil, err
	}
	if len(e.servers) == 1 { // there is one tunnel
		opening[zlibbed], opening[zstded] = traffic{2 * packetHeaders, 2}, traffic{2 * packetHeaders, 2}
	}
	for w, o := range opening {
		e.opening[w].add(o)
		e.between[w].add(o)
		e.sum[w].add(o)
	}
	for w, mode := range map[int]principal.Mode{firstContact: e.mode(), byConnection: principal.ByConnection} {
		near, far := memory.New(memory.Config{}), memory.New(memory.Config{})
		s.stores = append(s.stores, near, far)
		if s.pairs[w], err = newPair(near, far, &e.cfg, mode, e.reader.now); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// mode is who a client is to the near half of a pair.
func (e *estimator) mode() principal.Mode {
	if e.cfg.PerAddress {
		return principal.ByAddress
	}
	return principal.ByProof
}

// openings are what it takes to open the streams of the pairs of a server.
func (e *estimator) openings(host string) (o [ways]traffic, err error) {
	if o, known := e.byLength[len(host)]; known { // all that there is of it on the link is its name
		return o, nil
	}
	first, met, err := openings(e.ctx, host)
	o[firstContact], o[metBefore] = first.traffic(), met.traffic()
	o[byConnection], o[byConnectionMet] = o[firstContact], o[metBefore]
	e.byLength[len(host)] = o
	return o, err
}

// carry has the pairs carry a call, and fills in what it takes. It is false for one that they do
// not carry as messages.
func (s *called) carry(c *capturedCall, x *exchange, now time.Time) (bool, error) {
	var wait sync.WaitGroup
	var refused [ways]bool
	var failed [ways]error
	for w, p := range s.pairs {
		if p == nil {
			continue
		}
		wait.Go(func() { // the pairs know nothing of each other, and do most of the work
			var ok bool
			x.legs[w], ok, failed[w] = p.carry(c, now)
			refused[w] = !ok
		})
	}
	wait.Wait()
	if err := errors.Join(failed[:]...); err != nil || slices.Contains(refused[:], true) {
		return false, err
	}
	return true, nil
}
