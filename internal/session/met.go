package session

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/upgrade"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// MetPrefix begins the URIs of the entries that record how the session with an origin can be joined
// again. They are secret: each has a token.
const MetPrefix = xmlns.HHFRNegotiation + ":met:"

func metURI(u *url.URL) string { return MetPrefix + negotiate.Origin(u) }

// errNotMet means that there is no session to join again.
var errNotMet = errors.New("no session to join again is remembered")

// takeMet takes what is remembered of the last session with a peer, so that nobody else joins it
// with the same token; nil if nothing remembered fits the configuration.
func (d *Dialer) takeMet(ctx context.Context, u *url.URL, outbox *outbox) (*negotiate.Context, error) {
	entry, err := d.cfg.Store.Get(ctx, metURI(u))
	if errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := negotiate.ParseContext(entry.Value)
	if err != nil || !d.serves(c, u, outbox) {
		return nil, nil // the next session replaces it
	}
	err = d.cfg.Store.Delete(ctx, metURI(u), ctxstore.If(entry.Revision))
	if errors.Is(err, &ctxstore.Error{Code: ctxstore.Conflict}) ||
		errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
		return nil, nil // another session has taken it
	}
	return c, err
}

// serves reports whether a session is what the configuration would agree on.
func (d *Dialer) serves(c *negotiate.Context, u *url.URL, outbox *outbox) bool {
	transport, _ := strings.CutPrefix(c.Transport, negotiate.TransportPrefix)
	_, dials := d.cfg.Transports[transport]
	allowed := slices.Contains(d.cfg.offerable(u.Scheme == "https"), c.Transport)
	return len(c.Token) == streamer.TokenLen && c.Limits != nil && d.cfg.Clock.Now().Before(c.Expires) && dials &&
		allowed &&
		c.Representation == negotiate.RepresentationURI(d.cfg.Representations[0]) &&
		cmp.Or(c.Assurance, negotiate.AtMostOnce) == d.assurance() &&
		c.Sequence == outbox.name() && d.cfg.shares(c.Common) && slices.Equal(c.Headers, d.cfg.Headers) &&
		(c.RequestDescription == d.cfg.describe(d.cfg.RequestSchema).Name() &&
			c.ReplyDescription == d.cfg.describe(d.cfg.ReplySchema).Name() ||
			// A description that the peer did not have, hello names again.
			d.cfg.hint() != nil && c.RequestDescription == "" && c.ReplyDescription == "")
}

// rememberMet remembers how the session of a stream can be joined again, once its peer has allowed
// it.
func (s *Session) rememberMet(l *sessionStream, facts negotiate.Facts) {
	hello := l.stream.Hello()
	if len(hello.Token) == 0 || hello.Lifetime == 0 {
		return
	}
	lifetime := lifetimeOf(&hello)
	facts.Expires, facts.Proxy = s.cfg.Clock.Now().Add(lifetime), hello.Proxy
	if facts.Transport == negotiate.TransportURI("upgrade") {
		facts.Transport = negotiate.TransportURI(negotiate.OwnTransport(s.url.Scheme == "https"))
	}
	c := &negotiate.Context{Facts: facts, Token: hello.Token, Stages: hello.Stages, Limits: &hello.Limits}
	document, err := c.Marshal()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
		defer cancel()
		_, err = s.cfg.Store.Put(ctx, metURI(l.node), document, ctxstore.PutOptions{TTL: lifetime})
	}
	if err != nil {
		s.cfg.Log.Warn("session not remembered", "url", loggable(s.url), "err", err)
	}
}

// lifetimeOf returns how long the token in a peer's hello is valid.
func lifetimeOf(h *streamer.Hello) time.Duration {
	const most = 10 * 366 * 24 * time.Hour
	return time.Duration(min(h.Lifetime, uint64(most/time.Second))) * time.Second
}

// last has the session of a stream last until that ends, here as at its peer: halfway through its
// lifetime, what is recorded of it is kept for another one.
func (s *Session) last(l *sessionStream, n *negotiation) {
	facts := n.agreed.Facts
	hello := l.stream.Hello()
	lifetime := cmp.Or(lifetimeOf(&hello), facts.Expires.Sub(s.cfg.Clock.Now()))
	if lifetime <= 0 {
		<-l.stream.Done()
		return
	}
	timer := s.cfg.Clock.NewTimer(lifetime / 2)
	defer timer.Stop()
	for {
		select {
		case <-l.stream.Done():
			return
		case <-timer.C():
		}
		timer.Reset(lifetime / 2)
		for _, uri := range [...]string{facts.Session.URI(), metURI(l.node)} {
			ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
			kept, err := coders.Extend(ctx, s.cfg.Store, uri, facts.Session, s.cfg.Clock.Now(), lifetime)
			if kept != nil {
				err = n.keepScope(ctx, kept, lifetime)
			}
			cancel()
			if err != nil {
				s.cfg.Log.Warn("session not kept", "url", loggable(s.url), "err", err)
			}
		}
	}
}

// watchMet remembers the session of a stream, from when its peer's hello has come; and, when the
// stream ends, what the peer then knows.
func (s *Session) watchMet(l *sessionStream, n *negotiation) {
	select {
	case <-l.stream.Met():
	case <-l.stream.Done():
		if !isMet(l.stream) {
			if err := l.stream.Err(); n.met != nil && (isFull(err) || isNobody(err)) {
				n.dialer.putMetBack(context.Background(), n.url, n.met)
			}
			return
		}
	}
	hello := l.stream.Hello()
	n.share(&hello)
	s.rememberMet(l, n.confirmed(*n.agreed.Facts, &hello))
	s.last(l, n)
	if !coders.Learned(n.agreed.Facts.PeerShapes, n.coder) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
	defer cancel()
	coders.KeepKnown(ctx, s.cfg.Store, metURI(n.url), n.agreed.Facts.Session, s.cfg.Clock.Now(), n.coder,
		func(err error) {
			s.cfg.Log.Warn("session not updated", "url", loggable(s.url), "err", err)
		})
}

// putMetBack remembers a session again that was taken: no peer has used up its token.
func (d *Dialer) putMetBack(ctx context.Context, u *url.URL, c *negotiate.Context) {
	document, err := c.Marshal()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.Timeout)
		defer cancel()
		options := ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: c.Expires.Sub(d.cfg.Clock.Now())}
		_, err = d.cfg.Store.Put(ctx, metURI(u), document, options)
	}
	if err != nil && !errors.Is(err, &ctxstore.Error{Code: ctxstore.Conflict}) {
		d.cfg.Log.Warn("session not remembered", "url", loggable(u), "err", err)
	}
}

// invited joins the session that the field of an answer names.
func (n *negotiation) invited(ctx context.Context, i *upgrade.Invitation) error {
	d := n.dialer
	if !slices.Contains(d.cfg.offerable(n.url.Scheme == "https"), negotiate.TransportURI(i.Transport)) {
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

// plainFacts returns those of a session with the defaults for everything.
func (n *negotiation) plainFacts(id negotiate.SessionID, transport, address string) negotiate.Facts {
	return negotiate.Facts{
		Session:        id,
		Scheme:         negotiate.Scheme,
		Representation: negotiate.RepresentationURI("binary"),
		Transport:      negotiate.TransportURI(transport),
		Assurance:      negotiate.AtMostOnce,
		Security:       negotiate.TransportSecurity,
		Origin:         negotiate.Origin(n.url),
		Path:           negotiate.PathOf(n.url),
		Address:        address,
		Expires:        n.dialer.cfg.Clock.Now().Add(negotiate.DefaultLifetime),
	}
}
