package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// errNotAsked means that no call has asked for a stream yet; the first one will.
var errNotAsked = errors.New("no call has asked for a stream yet")

// find opens a stream by the path of the mode, or by the first of several that works, within
// Config.Timeout. now: one that needs no call, else the error may be errNotAsked.
func (n *negotiation) find(ctx context.Context, now bool) error {
	d := n.dialer
	ctx, cancel := within(ctx, d.cfg.Timeout)
	defer cancel()
	mode := d.cfg.Mode
	if mode == negotiate.Auto || mode == negotiate.Met {
		c, err := d.takeMet(ctx, n.url, n.outbox)
		if err != nil {
			return late(ctx, err)
		}
		if c != nil {
			if err = n.try(negotiate.Met, func() error { return n.rejoin(ctx, c) }); err == nil || ctx.Err() != nil {
				return err
			}
			d.cfg.Log.Info("session not joined again", "url", loggable(n.url), "err", err)
		}
	}
	switch asking := d.cfg.undeclarable() == "" && !n.undeclared; {
	case mode == negotiate.Declared:
		return n.try(negotiate.Declared, func() error { return n.declared(ctx) })
	case mode == negotiate.Auto && asking && n.declares() != nil:
		err := n.try(negotiate.Declared, func() error { return n.declared(ctx) })
		if err == nil || ctx.Err() != nil {
			return err
		}
		d.cfg.Log.Info("no stream where the description declares one", "url", loggable(n.url), "err", err)
	}
	switch {
	case mode == negotiate.Met:
		return n.try(negotiate.Met, func() error { return &refusal{err: errNotMet, passing: true, notAsked: true} })
	case mode == negotiate.Explicit, mode == negotiate.Auto && d.cfg.needsOffer(n.url.Scheme == "https") != "":
		return n.try(negotiate.Explicit, func() error { return n.open(ctx) })
	case !now:
		return errNotAsked
	}
	return n.try(negotiate.FirstCall, func() error { return n.question(ctx) })
}

// question asks for a stream with a request of its own.
func (n *negotiation) question(ctx context.Context) error {
	k := &ask{question: n}
	err := n.pose(ctx, k)
	switch {
	case k.n != nil: // maybe that of a call
		n.stream, n.coder, n.agreed = k.n.stream, k.n.coder, k.n.agreed
		return nil
	case k.invited != nil:
		return n.invited(ctx, k.invited)
	case err == nil:
		refused := &refusal{err: k.refused, passing: k.passing, portal: k.portal}
		refused.undecided, refused.after = n.dialer.undecided(k.answer)
		return refused
	}
	var own *negotiate.Error
	if errors.As(err, &own) {
		return own
	}
	if wrong := schemeOf(n.url, err); wrong != nil {
		return wrong
	}
	switch err = late(ctx, withoutURL(err)); {
	case k.conn == nil, TroubleOf(err) != 0:
		return &negotiate.Error{Code: negotiate.Unreachable, At: -1, Err: err}
	case n.dialer.cfg.ProbeTLS && ctx.Err() == nil && n.speaksTLS(ctx):
		return wrongScheme("https")
	}
	return &refusal{err: fmt.Errorf("no answer to a request that asks for a stream: %w", err), passing: true,
		undecided: k.answer == nil}
}

// upgradedBeside reports whether a question has opened a stream by itself.
func (n *negotiation) upgradedBeside(ctx context.Context) bool {
	_ = n.pose(ctx, &ask{question: n, alone: true})
	if n.stream == nil {
		return false
	}
	n.tried(negotiate.FirstCall, nil)
	return true
}

// pose sends a question.
func (n *negotiation) pose(ctx context.Context, k *ask) error {
	req, err := http.NewRequestWithContext(context.WithValue(ctx, askKey{}, k), http.MethodOptions, n.url.String(), nil)
	if err != nil {
		return err
	}
	n.offerFields(req.Header)
	if req.Header["User-Agent"] == nil {
		req.Header["User-Agent"] = nil // net/http would add its own
	}
	resp, err := n.asker.RoundTrip(req)
	if err == nil {
		err = schemeReply(n.url, resp)
		_ = resp.Body.Close()
	}
	return err
}

// portOf returns ":PORT" of a URL.
func portOf(u *url.URL) string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(negotiate.Origin(u), u.Scheme+"://"))
	return ":" + port
}
