package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// join opens the stream that was agreed on.
func (n *negotiation) join(ctx context.Context, a *negotiate.Answer) error {
	d := n.dialer
	facts := negotiate.Facts{
		Session:            a.Session,
		Scheme:             a.Scheme,
		Representation:     a.Representation,
		Transport:          a.Transport,
		Assurance:          a.Assurance,
		Security:           a.Security,
		Sequence:           a.Sequence,
		RequestDescription: a.Request.Name(),
		ReplyDescription:   a.Reply.Name(),
		Origin:             negotiate.Origin(n.url),
		Path:               negotiate.PathOf(n.url),
		Address:            a.Address,
		Expires:            d.cfg.Clock.Now().Add(a.Lifetime),
		PeerShapes:         a.Shapes,
	}
	switch {
	case a.HeadersKept > 0:
		facts.Headers = d.cfg.Headers
	case n.referrer != nil && len(n.agreed.Offer.References) > 0:
		n.referrer.Lost(d.cfg.Headers)
	}
	if a.ContextStore != "" {
		facts.Common = n.agreed.Offer.Common
	}
	if a.Transport == negotiate.HTTPTransport {
		return n.agreePlain(ctx, &facts)
	}
	transport, _ := strings.CutPrefix(a.Transport, negotiate.TransportPrefix)
	addr, err := d.streamAddr(transport, a.Address, n.url)
	if err != nil {
		return &refusal{err: err}
	}
	if err := d.keepSchemas(ctx, a); err != nil {
		return err
	}
	return n.openStream(ctx, &streamOpening{facts: facts, transport: transport, addr: addr, token: a.Token[:]})
}

// streamOpening is what openStream needs to open a stream.
type streamOpening struct {
	facts           negotiate.Facts
	transport, addr string
	token           []byte
	early           *streamer.PeerLimits // limits that the responder has promised: its hello is not waited for
	stages          *uint64              // stages that were agreed on before; nil: all
	target          string               // the URL of the service, in place of a token
	// names: hello names the description of the service, if there is one; optimistic: the peer has
	// it, unless its hello does not say so.
	names, optimistic bool
}

// dialFor bounds the connecting to the address of a stream, which something on the path may block:
// one or two lost packets are sent again in that time.
const dialFor = 8 * time.Second

// openStream opens the stream of a session.
func (n *negotiation) openStream(ctx context.Context, o *streamOpening) error {
	n.transport, n.address = o.facts.Transport, o.addr
	n.named = o.names && n.dialer.cfg.hint() != nil && !n.dialer.cfg.shared(&o.facts)
	cfg, err := n.streamConfig(ctx, &o.facts, n.named && o.optimistic)
	if err != nil {
		return err
	}
	dialing, stop := context.WithTimeout(ctx, dialFor)
	defer stop()
	conn, err := n.connect(dialing, o)
	if err != nil {
		if dialing.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("nobody answered within %v", dialFor)
		}
		refused := noStream(o.addr, late(ctx, err))
		refused.unsent, refused.silent = true, dialing.Err() != nil
		return refused
	}
	cfg.Session, cfg.Token, cfg.Target, cfg.Early = o.facts.Session, o.token, o.target, o.early
	if n.named {
		cfg.Description = n.dialer.cfg.hint()
	}
	if o.stages != nil {
		cfg.Without = ^*o.stages
	}
	return n.over(ctx, conn, cfg, &o.facts, o.addr)
}

// streamConfig stores the facts of a session, and prepares the configuration of its stream. shared:
// the peer has the description of the service, as far as is known.
func (n *negotiation) streamConfig(
	ctx context.Context, facts *negotiate.Facts, shared bool,
) (cfg streamer.Config, err error) {
	d := n.dialer
	number, _ := negotiate.RepresentationNumber(facts.Representation)
	n.coder, err = d.cfg.Coders(ctx, coders.Spec{
		Representation: number,
		Limits:         d.cfg.Stream.Limits,
		PeerKnows:      facts.PeerShapes,
		Schema:         d.cfg.RequestSchema,
		Contract:       d.cfg.Contract,
		Shared:         shared || d.cfg.shared(facts),
	})
	if err != nil {
		return cfg, err
	}
	cfg = d.cfg.Stream
	cfg.Initiator, cfg.Representation, cfg.Coder, cfg.Accept, cfg.Handler = true, number, n.coder, nil, n.serve
	cfg.Implied = httpmsg.Implied(facts.Path)
	if n.headers = n.newHeaders(facts); n.headers != nil {
		cfg.Outgoing, cfg.Incoming = n.headers.Outgoing, n.headers.Incoming
	}
	if n.outbox != nil {
		q := n.outbox.sequence()
		cfg.Acks, cfg.Kept, cfg.Handler = q.Acks, q.Kept, q.Handler(n.serve, d.cfg.Log)
	}
	return cfg, nil
}

// keepFacts stores the context of a session for whoever decodes a recording of it.
func (n *negotiation) keepFacts(ctx context.Context, facts *negotiate.Facts) error {
	document, err := (&negotiate.Context{Facts: *facts}).Marshal()
	if err != nil {
		return err
	}
	store, now := n.dialer.cfg.Store, n.dialer.cfg.Clock.Now()
	// If this end has another session of this name, it can only be one that is joined again, or the
	// peer uses the same store. That session is not overwritten.
	_, err = store.Put(ctx, facts.Session.URI(), document,
		ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: n.dialer.cfg.archived(facts.Expires.Sub(now))})
	if err != nil && !errors.Is(err, &ctxstore.Error{Code: ctxstore.Conflict}) {
		return err
	}
	return n.keepScope(ctx, facts, facts.Expires.Sub(now))
}

// over makes a stream of a connection that was opened for it.
func (n *negotiation) over(
	ctx context.Context, conn net.Conn, cfg streamer.Config, facts *negotiate.Facts, addr string,
) error {
	d := n.dialer
	opened := conn
	if d.cfg.WrapConn != nil {
		conn = d.cfg.WrapConn(conn)
	}
	if d.cfg.OnSession != nil {
		d.cfg.OnSession(*facts, conn)
	}
	stream, err := streamer.Over(ctx, netconn.Wrap(conn, opened), cfg)
	if err != nil {
		return noStream(addr, late(ctx, err))
	}
	return n.opened(ctx, stream, facts)
}

// opened takes over a stream that is open.
func (n *negotiation) opened(ctx context.Context, stream *streamer.Stream, facts *negotiate.Facts) error {
	select {
	case <-stream.Met():
		hello := stream.Hello()
		facts.Proxy = hello.Proxy
		*facts = n.confirmed(*facts, &hello)
		n.share(&hello)
	default: // what was remembered of the peer applies
	}
	err := n.keepFacts(ctx, facts)
	if err == nil && n.outbox != nil {
		err = n.outbox.taken(ctx)
	}
	if err != nil {
		stream.Abort(streamer.CloseInternal, "the context store failed")
		return err
	}
	if n.outbox != nil {
		n.outbox.sequence().Attach(stream)
	}
	n.stream, n.agreed.HHFR, n.agreed.Facts = stream, true, facts
	return nil
}

// keepSchemas stores the schemas that were agreed on, as the peer does: with them the session's
// context describes its messages.
func (d *Dialer) keepSchemas(ctx context.Context, a *negotiate.Answer) error {
	for _, c := range []struct {
		ours   *schema.Schema
		agreed *negotiate.Description
	}{{d.cfg.RequestSchema, a.Request}, {d.cfg.ReplySchema, a.Reply}} {
		s := c.ours
		switch {
		case c.agreed == nil:
			continue
		case c.agreed.Schema != "":
			var err error
			if s, err = schema.Parse([]byte(c.agreed.Schema)); err != nil {
				d.cfg.Log.Warn("description in the answer not read", "err", err)
				continue
			}
		case s == nil || s.URI() != c.agreed.Fingerprint:
			continue
		}
		if err := coders.KeepSchema(ctx, d.cfg.Store, s, d.cfg.archived(a.Lifetime)); err != nil {
			return err
		}
	}
	return nil
}

// streamAddr returns the address at which to open the stream. It refuses hosts that the URL did not
// name and the configuration does not allow: an answer must not send messages, or connections from
// inside a network, elsewhere.
func (d *Dialer) streamAddr(transport, address string, u *url.URL) (string, error) {
	if !negotiate.HasPorts(transport) {
		return address, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" || strings.Trim(port, "0123456789") != "" {
		return "", fmt.Errorf("answer names stream address %q", address)
	}
	if host == "" {
		host = u.Hostname()
	}
	same := func(h string) bool { return strings.EqualFold(h, host) || sameIP(h, host) }
	if !same(u.Hostname()) && !slices.ContainsFunc(d.cfg.AllowHost, same) {
		return "", fmt.Errorf("answer names stream host %q, which is neither that of the URL nor allowed", host)
	}
	return net.JoinHostPort(host, port), nil
}

func sameIP(a, b string) bool {
	x, y := net.ParseIP(a), net.ParseIP(b)
	return x != nil && x.Equal(y)
}
