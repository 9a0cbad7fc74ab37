package session

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/upgrade"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// rejoin opens a stream of a session that was met before. It waits only for the connection.
func (n *negotiation) rejoin(ctx context.Context) error {
	c := n.met
	transport, _ := strings.CutPrefix(c.Transport, negotiate.TransportPrefix)
	addr, err := n.dialer.streamAddr(transport, c.Address, n.url)
	if err != nil {
		return &refusal{err: err}
	}
	o := streamOpening{
		facts:     c.Facts,
		transport: transport,
		addr:      addr,
		token:     c.Token,
		early:     c.Limits,
		names:     true,
		stages:    &c.Stages,
	}
	o.facts.Path = c.Path
	if n.careful {
		o.early = nil
	}
	err = n.openStream(ctx, &o)
	if err == nil {
		return nil
	}
	n.met = nil
	// An address that drops packets is not tried repeatedly.
	if refused := refusalOf(err); refused.unsent && !refused.silent || isFull(err) {
		n.dialer.putMet(ctx, n.url, c, ctxstore.If(0)) // no peer has used up its token
	}
	return err
}

// errNotMet means that there is no session to join again.
var errNotMet = errors.New("no session to join again is remembered")

// takeMet takes what is remembered of the last session with a peer, so that nobody else joins it
// with the same token; nil if nothing remembered fits the configuration.
func (d *Dialer) takeMet(ctx context.Context, u *url.URL, outbox *outbox) (*negotiate.Context, error) {
	c, revision, err := metBefore(ctx, d.cfg.Store, u)
	if c == nil || !d.serves(c, u, outbox) {
		return nil, err // the next session replaces it
	}
	err = d.cfg.Store.Delete(ctx, metURI(u), ctxstore.If(revision))
	if errors.Is(err, ctxstore.Conflict) || errors.Is(err, ctxstore.NotFound) {
		return nil, nil // another session has taken it
	}
	return c, err
}

// serves reports whether a session is what the configuration would agree on.
func (d *Dialer) serves(c *negotiate.Context, u *url.URL, outbox *outbox) bool {
	return len(c.Token) == streamer.TokenLen && c.Limits != nil && d.cfg.Clock.Now().Before(c.Expires) &&
		slices.Contains(d.cfg.streams(negotiate.Met, u), c.Transport) &&
		c.Representation == negotiate.RepresentationURI(d.cfg.Representations[0]) &&
		cmp.Or(c.Assurance, negotiate.AtMostOnce) == d.assurance() &&
		c.Sequence == outbox.name() && d.cfg.shares(c.Common) && slices.Equal(c.Headers, d.cfg.Headers) &&
		(c.RequestDescription == d.cfg.describe(d.cfg.RequestSchema).Name() &&
			c.ReplyDescription == d.cfg.describe(d.cfg.ReplySchema).Name() ||
			// A description that the peer did not have, hello names again.
			d.cfg.hint() != nil && c.RequestDescription == "" && c.ReplyDescription == "")
}

// putMet remembers a session that can be joined again. only: where the store has none at a
// revision.
func (d *Dialer) putMet(ctx context.Context, u *url.URL, c *negotiate.Context, only *uint64) {
	document, err := c.Marshal()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.Timeout)
		defer cancel()
		_, err = d.cfg.Store.Put(ctx, metURI(u), document,
			ctxstore.PutOptions{IfRevision: only, TTL: c.Expires.Sub(d.cfg.Clock.Now())})
	}
	if err != nil && !errors.Is(err, ctxstore.Conflict) {
		d.cfg.Log.Warn("session not remembered", "url", loggable(u), "err", err)
	}
}

// invited joins the session that the field of an answer names.
func (n *negotiation) invited(ctx context.Context, i *upgrade.Invitation) error {
	d := n.dialer
	if !slices.Contains(d.cfg.streams(negotiate.FirstCall, n.url), negotiate.TransportURI(i.Transport)) {
		return &refusal{err: errors.New("the answer names a stream by " + i.Transport + ", which is not allowed")}
	}
	addr, err := d.streamAddr(i.Transport, i.Address, n.url)
	if err != nil {
		return &refusal{err: err}
	}
	facts := n.plainFacts(i.Session, i.Transport, i.Address)
	facts.Expires = d.cfg.Clock.Now().Add(i.Lifetime)
	return n.openStream(ctx, &streamOpening{facts: facts, transport: i.Transport, addr: addr, token: i.Token,
		names: true})
}
