package session

import (
	"context"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// streamPath is a path to a stream.
type streamPath struct {
	mode negotiate.Mode
	// fits reports whether mode Auto tries it; needed: any mode.
	fits   func(*negotiation) bool
	needed bool
	// byCalls: a call goes it; open is for where none can.
	byCalls bool
	open    func(*negotiation, context.Context) error
	failed  string // what the log says before the next one is tried; empty: it is the last
}

// paths are those to a stream, in the order in which they are tried (docs/architecture.md, The
// paths to a stream).
var paths = []streamPath{
	{
		mode: negotiate.Met, fits: func(n *negotiation) bool { return n.met != nil }, needed: true,
		open: (*negotiation).rejoin, failed: "session not joined again",
	},
	{
		mode: negotiate.Declared, open: (*negotiation).declared,
		fits: func(n *negotiation) bool {
			return n.cfg.undeclarable() == "" && !n.undeclared && n.declares() != nil
		},
		failed: "no stream where the description declares one",
	},
	{
		mode: negotiate.Explicit, open: (*negotiation).open,
		fits: func(n *negotiation) bool { return n.cfg.needsOffer(n.url.Scheme == "https") != "" },
	},
	{
		mode: negotiate.FirstCall, byCalls: true, open: (*negotiation).question,
		fits: func(*negotiation) bool { return true },
	},
}

// find opens a stream by the path of the mode, or by the first of several that works, within
// Config.Timeout. now: one that needs no call, else the error may be errNotAsked.
func (n *negotiation) find(ctx context.Context, now bool) error {
	ctx, cancel := within(ctx, n.cfg.Timeout)
	defer cancel()
	mode := n.cfg.Mode
	if mode == negotiate.Auto || mode == negotiate.Met {
		var err error
		if n.met, err = n.dialer.takeMet(ctx, n.url, n.outbox); err != nil {
			return late(ctx, err)
		}
	}
	for _, p := range paths {
		switch {
		case mode != p.mode && mode != negotiate.Auto, (mode == negotiate.Auto || p.needed) && !p.fits(n):
			continue
		case p.byCalls && !now:
			return errNotAsked
		}
		err := n.try(p.mode, func() error { return p.open(n, ctx) })
		if err == nil || ctx.Err() != nil || mode == p.mode && !p.needed || p.failed == "" {
			return err
		}
		n.log.Info(p.failed, "err", err)
	}
	return n.try(negotiate.Met, func() error { return &refusal{err: errNotMet, passing: true, notAsked: true} })
}
