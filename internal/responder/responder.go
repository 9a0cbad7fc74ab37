// Package responder is the responder's side of HHFR, the counterpart of package session. A
// [Responder] answers offers, upgrades connections and runs their streams in front of SOAP
// services. A [Handler] does so for unchanged servers of net/http.
package responder

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Config is the configuration of a [Responder]. It is copied; what it points to is shared and stays
// the caller's.
type Config struct {
	// Store keeps sessions and shapes; nil means memory.
	Store ctxstore.Store
	// Coders makes the coders of streams; nil means those of a book over Store (see
	// [coders.OfBook]), with their shapes in Store.
	Coders coders.Func
	// Addresses are the addresses where streams are accepted, by the name of the transport: for
	// tls, tcp and udp ":PORT", or "HOST:PORT" to advertise another host than that of the URLs; for
	// inproc a name. A transport without an address is not agreed to.
	Addresses map[string]string
	// Admit, if given, decides from the request of an offer who may have a session. Others are
	// refused, with the error as the reason, and continue in plain SOAP. See [AdmitCertificate] and
	// [AdmitBearer]. nil: everybody.
	Admit func(*http.Request) error
	// Representations accepted, by name; nil means all.
	Representations []string
	// Serve serves an exchange of a stream; several are served at once. path is that of the request
	// target in its head, or of the negotiated URL, unescaped as in url.URL.Path. Required.
	Serve func(ctx context.Context, path string, x *streamer.Exchange)
	// Sequenced serves messages that come in sequences; nil: only at-most-once without order is
	// agreed to. Exactly-once is agreed to if Store persists.
	Sequenced Sequenced
	// Serves reports whether there is a service at a path; offers elsewhere are passed on. nil:
	// everywhere.
	Serves func(path string) bool
	// UnchangingHeaders, if given, decides whether header blocks that the messages for the service
	// at path have in common are agreed to (Config.Headers of the initiator). Services get the
	// blocks with each message either way. An error is sent to the initiator. nil: all blocks that
	// are well-formed and contain no secret are agreed to.
	UnchangingHeaders func(path string, blocks []string) error
	// Common is the context store that initiators may use for header blocks as well; nil: none is
	// agreed to. Services get the blocks with each message.
	Common *unchanging.CommonStore
	// Archive: what decodes recordings of sessions that were joined stays in Store after they have
	// expired, for good, with the fragments that messages referred to.
	Archive bool
	// ReplySchema, if given, returns the schema of the replies of the service at path; nil if there
	// is none.
	ReplySchema func(path string) *schema.Schema
	// Contract, if given, returns the description of the messages of the service at path, by a WSDL
	// or XML Schema; nil if there is none. Peers that have it, too, name it by its fingerprint;
	// named: one has named a description, which may be this one. Otherwise it is about how shapes
	// of replies are learned.
	Contract func(path string, named bool) *typed.Contract
	// MaxLifetime is the longest lifetime granted; 0 means [MaxLifetime].
	MaxLifetime time.Duration
	// JoinWithin is how long after its answer a session may be joined; 0 means [DefaultJoinWithin].
	JoinWithin time.Duration
	// MaxSessions is how many sessions there may be, waiting or joined, and how many connections; 0
	// means [DefaultMaxSessions]. When the limit is reached, sessions that wait to be joined are
	// dropped for others.
	MaxSessions int
	// MaxPerPeer is how many of them one IP address may have, or one IPv6 network of 64 bits; 0
	// means half of MaxSessions. A server with clients behind one address, of a reverse proxy for
	// example, needs as many as MaxSessions.
	MaxPerPeer int
	// WrapConn, if given, wraps a stream's connection before anything is read or written (a
	// recorder). A wrapper that embeds the connection keeps what it can do beside [net.Conn] (see
	// [streamer.Transport]); one that does such a thing otherwise has the method for it.
	WrapConn func(net.Conn) net.Conn
	// OnSession, if given, is called for each session when its stream is accepted, before our hello
	// is sent, with the connection as wrapped. For a request that was upgraded, the connection is
	// the one that net/http has; it stands below a NetConn method where some of it was read ahead.
	OnSession func(negotiate.Facts, net.Conn)
	// OnStream, if given, is called with each stream once it is open, to begin exchanges on it. It
	// must not block.
	OnStream func(negotiate.Facts, *streamer.Stream)
	// OnePath: other handlers are around this one. The stream of an upgraded connection serves only
	// POST requests for the path that its first request was for, since the others would pass no
	// handler around this one. They are refused as unprocessed, and a question by OPTIONS gets no
	// stream. It is about streams of [Handler] alone.
	OnePath bool
	// StreamContext, if given, returns the context from which those of a stream's requests are
	// made, beginning with the second; only its values count. ctx is the one to derive it from, and
	// req the request whose connection was upgraded, as the handlers around this one passed it on.
	StreamContext func(ctx context.Context, req *http.Request) context.Context
	// Stream gives limits, sizes and hooks of streams. Negotiation overwrites what it decides.
	Stream streamer.Config
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log receives refused offers and failed streams; nil: they are not logged.
	Log *slog.Logger

	serve func(ctx context.Context, s *servedSession, x *streamer.Exchange) // that of a Handler, instead of Serve
}

func (c Config) withDefaults() (Config, error) {
	if c.Serve == nil && c.serve == nil {
		return c, negotiate.BadConfigf("Serve is required")
	}
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	c.Store, c.Coders = coders.WithDefaults(c.Store, c.Coders, c.Clock)
	if err := negotiate.CheckRepresentations(&c.Representations); err != nil {
		return c, err
	}
	for name := range c.Addresses {
		if !negotiate.KnownTransport(name) {
			return c, negotiate.BadConfigf("unknown transport %q", name)
		}
	}
	if c.MaxLifetime <= 0 {
		c.MaxLifetime = MaxLifetime
	}
	if c.JoinWithin <= 0 {
		c.JoinWithin = DefaultJoinWithin
	}
	if c.MaxSessions <= 0 {
		c.MaxSessions = DefaultMaxSessions
	}
	if c.MaxPerPeer <= 0 {
		c.MaxPerPeer = max(c.MaxSessions/2, 1)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Responder answers offers ([Responder.Handler]) and accepts streams ([Responder.ServeStreams]).
// All methods are safe for concurrent use.
type Responder struct {
	cfg Config

	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup

	registry *registry
	restorer *unchanging.Restorer // nil: there is no common store
	conns    accept.Room
	beyond   accept.Refusals

	mu      sync.Mutex
	closed  bool
	ended   []endedSession // oldest first
	closers map[closer]struct{}
	extends clock.Timer // nil: no session was joined

	endedWeight int // weight of them all

	sequences sequences

	storeFails atomic.Bool // the log says so
}

// New checks the configuration. The caller must call Close in the end. Errors: BadConfig.
func New(cfg Config) (*Responder, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Responder{cfg: cfg, registry: newRegistry(&cfg), closers: map[closer]struct{}{}}
	r.restorer = cfg.Common.Restorer(cfg.Store, cfg.Archive, cfg.Clock, cfg.Log)
	r.conns.Max, r.conns.PerPeer, r.conns.Log = cfg.MaxSessions, cfg.MaxPerPeer, cfg.Log
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// answer selects from an offer made by a request, and stores the session. Its error is refusedItems
// where it may be sent to the peer.
func (r *Responder) answer(ctx context.Context, req *http.Request, o *negotiate.Offer) (*negotiate.Answer, error) {
	if err := r.admit(req); err != nil {
		return nil, err
	}
	path := req.URL.EscapedPath()
	a := &negotiate.Answer{
		Session:     negotiate.NewSessionID(),
		Lifetime:    min(cmpDefault(o.Lifetime, negotiate.DefaultLifetime), r.cfg.MaxLifetime),
		RequestHead: negotiate.DefaultRequestFields,
		ReplyHead:   negotiate.DefaultReplyFields,
		Ignored:     o.Ignored,
	}
	rand.Read(a.Token[:])
	r.agreeCommon(o, a)
	if err := r.choose(o, a); err != nil {
		return nil, err
	}
	var err error
	if a.Assurance != negotiate.AtMostOnce {
		a.Sequence = o.Sequence
		if a.SequenceKnown, err = r.knows(ctx, o.Sequence); err != nil {
			return nil, err
		}
	}
	if a.Shapes, err = r.common(ctx, o.Shapes); err != nil {
		return nil, err
	}
	facts := negotiate.Facts{
		Session:        a.Session,
		Scheme:         a.Scheme,
		Representation: a.Representation,
		Transport:      a.Transport,
		Assurance:      a.Assurance,
		Security:       a.Security,
		Sequence:       a.Sequence,
		Origin:         requestOrigin(req),
		Path:           path,
		Address:        a.Address,
		Expires:        r.cfg.Clock.Now().Add(a.Lifetime),
		PeerShapes:     o.Shapes,
	}
	if a.ContextStore != "" {
		facts.Common = o.Common
	}
	headers, err := r.offeredHeaders(ctx, o, a)
	if err == nil {
		err = r.takeHeaders(path, headers)
	}
	if err != nil {
		a.Refused = append(a.Refused, negotiate.Declined{Item: "UnchangingHeader", Why: err.Error()})
	} else if len(headers) > 0 {
		a.HeadersKept, facts.Headers = len(headers), headers
	}
	if err := r.describe(ctx, o, a, &facts); err != nil {
		return nil, err
	}
	gone, ok := r.registry.add(a.Session, peerOf(req))
	r.forget(ctx, gone)
	if !ok {
		return nil, negotiate.Busy
	}
	revision, err := r.keep(ctx, facts, a)
	if err != nil {
		r.registry.remove(a.Session)
		return nil, err
	}
	if !r.registry.stored(a.Session, revision) {
		r.forget(ctx, []dropped{{a.Session, revision}})
		return nil, negotiate.Busy
	}
	if a.Transport == negotiate.HTTPTransport {
		r.retire(ctx, a.Session, facts.Headers) // nobody joins it
	}
	return a, nil
}

// choose selects where the offer gives a choice. Items with nothing in common refuse the offer.
func (r *Responder) choose(o *negotiate.Offer, a *negotiate.Answer) error {
	var refused negotiate.RefusedItems
	for _, c := range []struct {
		item    string
		offered []string
		ours    func(uri string) bool
		chosen  *string
	}{
		{"Scheme", o.Schemes, func(uri string) bool { return uri == negotiate.Scheme }, &a.Scheme},
		{"Representation", o.Representations, func(uri string) bool {
			return slices.ContainsFunc(r.cfg.Representations,
				func(name string) bool { return negotiate.RepresentationURI(name) == uri })
		}, &a.Representation},
		{"Transport", o.Transports, func(uri string) bool {
			return r.address(uri) != "" || uri == negotiate.HTTPTransport && a.ContextStore != ""
		}, &a.Transport},
		{"Assurance", negotiate.OrOnly(o.Assurances, negotiate.AtMostOnce),
			func(uri string) bool { return r.assure(uri, o) == nil }, &a.Assurance},
		{"Security", negotiate.OrOnly(o.Securities, negotiate.TransportSecurity),
			func(uri string) bool { return uri == negotiate.TransportSecurity }, &a.Security},
	} {
		at := slices.IndexFunc(c.offered, c.ours)
		if at < 0 {
			why := "nothing in common"
			if c.item == "Assurance" {
				why = r.assure(o.Assurances[0], o).Error()
			}
			refused = append(refused, negotiate.Declined{Item: c.item, Why: why})
			continue
		}
		*c.chosen = c.offered[at]
	}
	if refused != nil {
		return refused
	}
	a.Address = r.address(a.Transport)
	if a.Transport == negotiate.HTTPTransport {
		a.Address, a.Representation = "-", negotiate.RepresentationURI("xml")
		if !slices.Contains(o.Representations, a.Representation) {
			return negotiate.RefusedItems{{Item: "Representation", Why: "plain SOAP is xml"}}
		}
	}
	return nil
}

// address returns where streams of a transport are accepted; empty if nowhere.
func (r *Responder) address(uri string) string {
	name, _ := strings.CutPrefix(uri, negotiate.TransportPrefix)
	return r.cfg.Addresses[name]
}

// peerOf returns the sender of a request, as sessions are counted.
func peerOf(req *http.Request) string { return accept.Peer(req.RemoteAddr) }

// requestOrigin returns the scheme and host that a request was made to, as far as it shows them;
// empty if it does not.
func requestOrigin(req *http.Request) string {
	scheme := "http"
	if req.TLS != nil {
		scheme = "https"
	}
	u, err := url.Parse(scheme + "://" + req.Host)
	if err != nil || u.Host != req.Host || u.Hostname() == "" || negotiate.CheckText(req.Host) != nil {
		return ""
	}
	return negotiate.Origin(u)
}

func cmpDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// common returns the fingerprints whose shapes the store has, in the order of the offer.
func (r *Responder) common(ctx context.Context, offered [][32]byte) ([][32]byte, error) {
	var have [][32]byte
	seen := make(map[[32]byte]bool, len(offered))
	for _, fp := range offered {
		if seen[fp] {
			continue
		}
		seen[fp] = true
		here, err := ctxstore.Has(ctx, r.cfg.Store, ctxstore.ShapeURI(fp))
		switch {
		case here:
			have = append(have, fp)
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			r.cfg.Log.Warn("shape not looked up", "err", err)
		}
	}
	return have, nil
}

// keep writes the session's context. Until the session is joined, its context expires when it may
// no longer be joined.
func (r *Responder) keep(ctx context.Context, facts negotiate.Facts, a *negotiate.Answer) (revision uint64, err error) {
	hash := sha256.Sum256(a.Token[:])
	c := negotiate.Context{Facts: facts, TokenHash: hash[:], Lifetime: a.Lifetime}
	document, err := c.Marshal()
	if err != nil {
		return 0, err
	}
	o := ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: min(r.cfg.JoinWithin, a.Lifetime)}
	if facts.Common != nil {
		o.TTL = r.archived(a.Lifetime) // plain SOAP refers to it also if the session is not joined
	}
	if err := r.keepScope(ctx, &facts, a.Lifetime); err != nil {
		return 0, err
	}
	return r.cfg.Store.Put(ctx, a.Session.URI(), document, o)
}

// Close ends all streams, after what was accepted is written, makes ServeStreams return, and waits
// for everything that it started. It is idempotent. Listeners are closed; Store and Coders are not.
func (r *Responder) Close() error {
	closers := r.shut()
	r.mu.Lock()
	if r.extends != nil {
		r.extends.Stop()
	}
	r.mu.Unlock()
	var stops sync.WaitGroup // not r.wait, which Shutdown may be waiting for
	for _, c := range closers {
		stops.Go(c.stop)
	}
	r.stop()
	stops.Wait()
	r.wait.Wait()
	return nil
}

// Shutdown is Close for what takes longer: it accepts nothing more, lets nothing begin on the
// streams, and waits until what is under way there is over and they have ended in order, or until
// ctx is done. Then its error is the cause of that, and what is left goes on until Close.
func (r *Responder) Shutdown(ctx context.Context) error {
	for _, c := range r.shut() {
		c.drain()
	}
	over := make(chan struct{})
	go func() {
		r.wait.Wait()
		close(over)
	}()
	select {
	case <-over:
		return r.Close()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// shut lets nothing more begin, and returns what runs.
func (r *Responder) shut() []closer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return slices.Collect(maps.Keys(r.closers))
}

// closer runs until the responder is closed: stop waits for its end, which drain only begins.
type closer interface {
	stop()
	drain()
}

// onClose makes Close stop c, until offClose is called. false: the responder is closed already.
func (r *Responder) onClose(c closer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.closers[c] = struct{}{}
	return true
}

func (r *Responder) offClose(c closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.closers, c)
}

// takeHeaders returns the reason why the blocks are not agreed to; nil if they are.
func (r *Responder) takeHeaders(path string, blocks []string) error {
	if len(blocks) == 0 {
		return nil
	}
	if err := negotiate.CheckHeaders(blocks); err != nil || r.cfg.UnchangingHeaders == nil {
		return err
	}
	return r.cfg.UnchangingHeaders(path, blocks)
}
