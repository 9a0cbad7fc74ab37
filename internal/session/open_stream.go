package session

import (
	"bytes"
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
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

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
	n.named = o.names && n.cfg.hint() != nil && !n.cfg.shared(&o.facts)
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
		cfg.Description = n.cfg.hint()
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
	if n.headers = newHeaders(n.cfg, facts, n.taken); n.headers != nil {
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
	store, now := n.cfg.Store, n.cfg.Clock.Now()
	// If this end has another session of this name, it can only be one that is joined again, or the
	// peer uses the same store. That session is not overwritten.
	_, err = store.Put(ctx, facts.Session.URI(), document,
		ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: n.cfg.archived(facts.Expires.Sub(now))})
	if err != nil && !errors.Is(err, ctxstore.Conflict) {
		return err
	}
	return unchanging.KeepScope(ctx, store, facts, n.cfg.archived(facts.Expires.Sub(now)))
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

// confirmed returns the facts of a session with the description of the service, if the hello of its
// responder names that.
func (n *negotiation) confirmed(facts negotiate.Facts, hello *streamer.Hello) negotiate.Facts {
	if hint := n.cfg.hint(); hint != nil && bytes.Equal(hello.Description, hint) {
		facts.RequestDescription = n.cfg.Contract.URI()
		facts.ReplyDescription = facts.RequestDescription
	}
	return facts
}

// sharer is a coder whose shapes may stand on the description of the service.
type sharer interface{ Share(shared bool) }

// share tells the coder of a stream whose hello named the description whether its peer has that.
func (n *negotiation) share(hello *streamer.Hello) {
	if c, ok := n.coder.(sharer); ok && n.named {
		c.Share(bytes.Equal(hello.Description, n.cfg.hint()))
	}
}

// earlyDialer is a transport that can send what is written to a connection before the peer has
// answered its dial. Where the dial fails, the connection ends with its error, a *[net.OpError] of
// the operation "dial".
type earlyDialer interface {
	DialEarly(ctx context.Context, addr string) (net.Conn, error)
}

// connect opens the connection of a stream. One of a session that was met does not wait for the
// peer if its messages stand in a sequence that outlives streams: what such a connection loses is
// sent again, and not processed twice.
func (n *negotiation) connect(ctx context.Context, o *streamOpening) (net.Conn, error) {
	t := n.cfg.Transports[o.transport]
	if e, ok := t.(earlyDialer); ok && o.early != nil && n.cfg.kept() {
		return e.DialEarly(ctx, o.addr)
	}
	return t.Dial(ctx, o.addr)
}
