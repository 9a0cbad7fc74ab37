// Package estimate says what hhfr would bring to those whose traffic is in a capture: the calls of
// plain SOAP in it go once more over emulated links, as they are and through pairs of proxies.
//
// What a pair sends is what the learner, the coder and the encoder of streams make of the messages,
// whose heads and bodies are those of a real pair. What they take on a link is computed, packet by
// packet, by the lines of package link in virtual time: in the capture's own time, a request leaves
// at its time in the capture, or when the replies have come that its client had before it,
// whichever is later.
package estimate

import (
	"context"
	"net/netip"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Run estimates what the calls in captures take. The counts of packets tell what is missing.
// Errors: ErrNoSOAP, with a report; ErrManyServers; those of package flow and link, of reading, and
// the cause of ctx.
func Run(ctx context.Context, cfg Config, inputs ...Capture) (*Report, flow.Stats, error) {
	e := &estimator{cfg: cfg, ctx: ctx, report: &Report{}, numbers: map[soap.Name]int{},
		servers: map[netip.AddrPort]*called{}, byLength: map[int][ways]traffic{}}
	defer e.close()
	var err error
	if e.rivals, err = newRivals(cfg.ZstdLevel); err != nil {
		return nil, flow.Stats{}, err
	}
	stats, err := e.read(inputs)
	switch {
	case err != nil:
		return nil, stats, err
	case e.report.Calls == 0:
		e.report.HHFR = e.reader.hhfr
		return e.report, stats, ErrNoSOAP
	}
	if err := e.meetAgain(); err != nil {
		return nil, stats, err
	}
	if _, err := e.read(inputs); err != nil {
		return nil, stats, err
	}
	e.finish()
	return e.report, stats, nil
}
