package responder

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/hhfr/hhfr/internal/responder/machine"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/internal/upgrade"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// joins lets streams join sessions. All methods are safe for concurrent use.
type joins struct {
	cfg          *Config
	sessions     *sessions
	descriptions *descriptions
}

// joined is a session that a stream may belong to.
type joined struct {
	facts    negotiate.Facts
	token    []byte        // the next token
	lifetime time.Duration // the lifetime of that token
	promised streamer.PeerLimits
	// description is the name of the one that was agreed on now; nil: there is none.
	description []byte
}

// early is what the initiator may keep to before it has read the responder's hello: what that
// stated last, or, of what every responder takes, the length of fragments.
func (j *joined) early() streamer.PeerLimits {
	if j.promised == (streamer.PeerLimits{}) {
		return streamer.PeerLimits{MaxFragment: streamer.EarlyLimits.MaxFragment}
	}
	return j.promised
}

// enterSession finds the session of an initiator's hello: one that it has a token for, or a first
// contact.
func (n *joins) enterSession(ctx context.Context, h streamer.Hello, from *http.Request) (*joined, error) {
	if len(h.Token) == 0 {
		return n.firstContact(ctx, h, from)
	}
	return n.join(ctx, h, peerOf(from))
}

// join takes the session that a peer's hello names: nobody can join with the same token again. The
// order matters. Only a peer with a valid token gets a slot, for which other sessions may be
// dropped. Only a peer with a slot uses up the token, so that a peer that is turned away can come
// again.
func (n *joins) join(ctx context.Context, h streamer.Hello, peer string) (j *joined, err error) {
	var entered *negotiate.Facts // the session, once it has a slot
	defer func() {
		if err != nil && entered != nil {
			n.sessions.left(ctx, entered.Session, entered.Headers)
		}
	}()
	// An older stream of the session may write the context at its end. That is no reason to refuse
	// the next stream.
	for range maxTries {
		c, revision, err := n.shown(ctx, h)
		if err != nil {
			return nil, err
		}
		if entered == nil {
			if !n.sessions.happened(ctx, machine.Joined{Session: machine.ID(c.Session), Peer: peer}) {
				return nil, busy()
			}
			entered = &c.Facts
		}
		if j, err = n.spend(ctx, c, revision, h.Description); !errors.Is(err, errChanged) {
			return j, err
		}
	}
	return nil, refusedSession()
}

// maxTries bounds how often a session is read again that was changed concurrently.
const maxTries = 4

// errChanged: the context of the session was changed concurrently.
var errChanged = errors.New("changed meanwhile")

// shown returns the context of the session that a peer's hello has a token for, with its revision.
func (n *joins) shown(ctx context.Context, h streamer.Hello) (*negotiate.Context, uint64, error) {
	id := negotiate.SessionID(h.Session)
	entry, err := n.cfg.Store.Get(ctx, id.URI())
	if err != nil {
		if errors.Is(err, ctxstore.NotFound) {
			return nil, 0, refusedSession()
		}
		return nil, 0, n.sessions.storeFailed(ctx, "session not looked up", id, err)
	}
	c, err := negotiate.ParseContext(entry.Value)
	if err != nil {
		n.cfg.Log.Warn("session not read", "session", id.String(), "err", err)
		return nil, 0, refusedSession()
	}
	if !c.Admits(id, h.Token, n.cfg.Clock.Now()) {
		return nil, 0, refusedSession()
	}
	if number, _ := negotiate.RepresentationNumber(c.Representation); number != h.Representation {
		return nil, 0, &streamer.Refusal{
			CloseCode: streamer.CloseUnsupported,
			Text:      "another representation was agreed on",
		}
	}
	// With a common store there may be blocks later.
	if taken := h.Stages&streamer.Headers != 0; taken != (len(c.Headers) > 0) && (!taken || c.Common == nil) {
		return nil, 0, &streamer.Refusal{
			CloseCode: streamer.CloseUnsupported,
			Text:      "something else was agreed on unchanging headers",
		}
	}
	return c, entry.Revision, nil
}

// spend uses up the token of a session, which admits nobody any more. description names the one
// that the initiator has.
func (n *joins) spend(
	ctx context.Context, c *negotiate.Context, revision uint64, description []byte,
) (*joined, error) {
	j := &joined{}
	n.agreeOn(description, c, j)
	if c.Limits != nil {
		j.promised = *c.Limits
	}
	c.Lifetime = cmp.Or(c.Lifetime, negotiate.DefaultLifetime)
	if err := n.renew(ctx, c, j, ctxstore.If(revision)); err != nil {
		return nil, err
	}
	return j, nil
}

// renew uses up the token of a session, makes the next one, and keeps the session for its lifetime
// from now on.
func (n *joins) renew(ctx context.Context, c *negotiate.Context, j *joined, revision *uint64) error {
	c.Expires = n.cfg.Clock.Now().Add(c.Lifetime)
	c.TokenHash = nil
	if len(n.cfg.Addresses) > 0 {
		j.token, j.lifetime = make([]byte, streamer.TokenLen), c.Lifetime
		rand.Read(j.token)
		hash := sha256.Sum256(j.token)
		c.TokenHash = hash[:]
	}
	j.facts = c.Facts
	limits, err := n.cfg.Stream.Limits.Stated()
	if err != nil {
		return err
	}
	c.Limits = &limits
	document, err := c.Marshal()
	if err != nil {
		return err
	}
	_, err = n.cfg.Store.Put(ctx, c.Session.URI(), document,
		ctxstore.PutOptions{IfRevision: revision, TTL: n.cfg.archived(c.Lifetime)})
	switch {
	case errors.Is(err, ctxstore.Conflict):
		return errChanged
	case err != nil:
		return n.sessions.storeFailed(ctx, "session not stored", c.Session, err)
	}
	if err := unchanging.KeepScope(ctx, n.cfg.Store, &c.Facts, n.cfg.archived(c.Lifetime)); err != nil {
		return n.sessions.storeFailed(ctx, "session not stored", c.Session, err)
	}
	n.sessions.lasts(ctx, c.Session, c.Lifetime)
	return nil
}

// firstContact makes a session for the service at the target of a hello.
func (n *joins) firstContact(ctx context.Context, h streamer.Hello, from *http.Request) (*joined, error) {
	if local, ok := from.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "udp" {
		return nil, refusedSession() // its address may be made up: nothing but a token speaks for it
	}
	u, err := url.Parse(h.Target)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		negotiate.CheckText(h.Target) != nil {
		return nil, refusedSession()
	}
	representation := n.representation(h.Representation)
	if representation == "" || h.Stages&streamer.Headers != 0 {
		return nil, &streamer.Refusal{
			CloseCode: streamer.CloseUnsupported,
			Text:      "a first contact is in a representation that is spoken here, without unchanging headers",
		}
	}
	req := from.Clone(ctx)
	req.URL, req.Host = u, u.Host
	transport := negotiate.OwnTransport(from.TLS != nil)
	if n.cfg.admit(req) != nil || n.cfg.Addresses[transport] == "" || n.cfg.Serves != nil && !n.cfg.Serves(u.Path) {
		return nil, refusedSession()
	}
	j, err := n.begin(ctx, req, firstTerms{negotiate.SessionID(h.Session), transport, representation, h.Description})
	switch {
	case errors.Is(err, errChanged): // another peer's session has this name
		return nil, refusedSession()
	case errors.Is(err, errNoRoom):
		return nil, busy()
	}
	return j, err
}

// agreeOn agrees on the description that an initiator names, if this end has it and nothing else
// was agreed on.
func (n *joins) agreeOn(name []byte, c *negotiate.Context, j *joined) {
	described := n.descriptions.named(name, c.Path)
	if described == nil {
		return
	}
	if c.RequestDescription == "" && c.ReplyDescription == "" {
		c.RequestDescription, c.ReplyDescription = described.URI(), described.URI()
	}
	if isDescribed(described, &c.Facts) {
		j.description = name
	}
}

// representation returns the URI of the representation of a number in hello; empty if it is not
// spoken here.
func (n *joins) representation(number uint64) string {
	for _, name := range n.cfg.Representations {
		uri := negotiate.RepresentationURI(name)
		if spoken, _ := negotiate.RepresentationNumber(uri); spoken == number {
			return uri
		}
	}
	return ""
}

// firstTerms are what a session is begun with that no offer was made for.
type firstTerms struct {
	id                        negotiate.SessionID
	transport, representation string
	description               []byte // the name of the one that the initiator has; nil: none
}

// begin makes a session for a request that is no offer. It has the defaults of this version where
// nothing else was agreed on.
func (n *joins) begin(ctx context.Context, req *http.Request, t firstTerms) (*joined, error) {
	id := t.id
	if !n.sessions.happened(ctx, machine.Joined{Session: machine.ID(id), Peer: peerOf(req)}) {
		return nil, errNoRoom
	}
	c := &negotiate.Context{Lifetime: min(negotiate.DefaultLifetime, n.cfg.MaxLifetime), Facts: negotiate.Facts{
		Session:        id,
		Scheme:         negotiate.Scheme,
		Representation: t.representation,
		Transport:      negotiate.TransportURI(t.transport),
		Assurance:      negotiate.AtMostOnce,
		Security:       negotiate.TransportSecurity,
		Origin:         requestOrigin(req),
		Path:           negotiate.PathOf(cameTo(req)),
		Address:        n.addressFor(req),
	}}
	j := &joined{}
	n.agreeOn(t.description, c, j)
	if err := n.renew(ctx, c, j, ctxstore.If(0)); err != nil {
		n.sessions.happened(ctx, machine.Withdrawn{Session: machine.ID(id)})
		return nil, err
	}
	return j, nil
}

// addressFor returns the address at which the session of a request can be joined again: ":PORT" or
// "HOST:PORT"; that of the connection itself if there is no other.
func (n *joins) addressFor(req *http.Request) string {
	if a := n.cfg.Addresses[negotiate.OwnTransport(req.TLS != nil)]; a != "" {
		return a
	}
	return upgrade.OwnPort(req)
}
