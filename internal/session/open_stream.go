package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// join opens the stream that was agreed on.
func (n *negotiation) join(ctx context.Context, a *negotiate.Answer) error {
	d := n.dialer
	transport, _ := strings.CutPrefix(a.Transport, negotiate.TransportPrefix)
	addr, err := d.streamAddr(transport, a.Address, n.url)
	if err != nil {
		return &refusal{err: err}
	}
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
	if a.HeadersKept > 0 {
		facts.Headers = d.cfg.Headers
	}
	if err := d.keepSchemas(ctx, a); err != nil {
		return err
	}
	return n.openStream(ctx, &opening{facts: facts, transport: transport, addr: addr, token: a.Token[:]})
}

// opening is what openStream needs to open a stream.
type opening struct {
	facts           negotiate.Facts
	transport, addr string
	token           []byte
	early           *streamer.PeerLimits // limits that the responder has promised: its hello is not waited for
	stages          *uint64              // stages that were agreed on before; nil: all
	dialing         context.Context      // bounds the dialing alone; nil: the context of all
}

// openStream opens the stream of a session.
func (n *negotiation) openStream(ctx context.Context, o *opening) error {
	n.transport, n.address = o.facts.Transport, o.addr
	cfg, err := n.streamConfig(ctx, &o.facts)
	if err != nil {
		return err
	}
	dialing := o.dialing
	if dialing == nil {
		dialing = ctx
	}
	conn, err := n.connect(dialing, o)
	if err != nil {
		refused := noStream(o.addr, n.late(ctx, err))
		refused.unsent = true
		return refused
	}
	cfg.Session, cfg.Token, cfg.Early = o.facts.Session, o.token, o.early
	if o.stages != nil {
		cfg.Without = ^*o.stages
	}
	return n.over(ctx, conn, cfg, &o.facts, o.addr)
}

// streamConfig stores the facts of a session, and prepares the configuration of its stream.
func (n *negotiation) streamConfig(ctx context.Context, facts *negotiate.Facts) (cfg streamer.Config, err error) {
	d := n.dialer
	number, _ := negotiate.RepresentationNumber(facts.Representation)
	n.coder, err = d.cfg.Coders(ctx, coders.Spec{
		Representation: number,
		Limits:         d.cfg.Stream.Limits,
		PeerKnows:      facts.PeerShapes,
		Schema:         d.cfg.RequestSchema,
	})
	if err != nil {
		return cfg, err
	}
	cfg = d.cfg.Stream
	cfg.Initiator, cfg.Representation, cfg.Coder, cfg.Accept, cfg.Handler = true, number, n.coder, nil, n.serve
	if len(facts.Headers) > 0 {
		headers := &unchanging.Blocks{Texts: facts.Headers, Taken: n.taken}
		cfg.Outgoing, cfg.Incoming = headers.Outgoing, headers.Incoming
	}
	if n.outbox != nil {
		q := n.outbox.sequence()
		cfg.Acks, cfg.Handler = q.Acks, q.Handler(n.serve, d.cfg.Log)
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
		ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: facts.Expires.Sub(now)})
	if errors.Is(err, &ctxstore.Error{Code: ctxstore.Conflict}) {
		return nil
	}
	return err
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
		return noStream(addr, n.late(ctx, err))
	}
	return n.opened(ctx, stream, facts)
}

// opened takes over a stream that is open.
func (n *negotiation) opened(ctx context.Context, stream *streamer.Stream, facts *negotiate.Facts) error {
	select {
	case <-stream.Met():
		facts.Proxy = stream.Hello().Proxy
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
		if err := coders.KeepSchema(ctx, d.cfg.Store, s, a.Lifetime); err != nil {
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
