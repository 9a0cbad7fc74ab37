package negotiate

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// ResponderConfig is what a [Responder] works with. It is copied; what it points to is shared and stays the caller's.
type ResponderConfig struct {
	// Store keeps sessions and shapes. Required.
	Store ctxstore.Store
	// Coders makes the coders of streams; see [BookCoders]. Required; their shapes lie in Store.
	Coders Coders
	// Addresses says where streams are accepted, by the name of the transport: for tcp ":PORT", or "HOST:PORT" to advertise another host
	// than that of the URLs, for inproc a name. A transport without an address is not agreed to.
	Addresses map[string]string
	// Representations accepted, by name; nil means all.
	Representations []string
	// Serve serves an exchange of a stream, in a goroutine of its own. path is that of its head's request target, or of the negotiated URL,
	// unescaped as in url.URL.Path.
	// Required.
	Serve func(ctx context.Context, path string, x *streamer.Exchange)
	// Serves reports whether there is a service at a path; offers elsewhere are passed on. nil: everywhere.
	Serves func(path string) bool
	// MaxLifetime is the longest lifetime granted; 0 means [MaxLifetime].
	MaxLifetime time.Duration
	// JoinWithin is how long after its answer a session may be joined; 0 means [DefaultJoinWithin].
	JoinWithin time.Duration
	// MaxSessions is how many sessions there may be, waiting or joined, and how many connections; 0 means [DefaultMaxSessions].
	MaxSessions int
	// WrapConn, if given, wraps a stream's connection before anything is read or written (a recorder).
	WrapConn func(net.Conn) net.Conn
	// OnSession, if given, is told of each session when its stream is accepted, before our hello is sent, with the connection as wrapped.
	OnSession func(Facts, net.Conn)
	// OnStream, if given, gets each stream once it is open, to begin exchanges on it. It must not wait.
	OnStream func(Facts, *streamer.Stream)
	// Stream gives limits, sizes and hooks of streams; what negotiation decides is overwritten.
	Stream streamer.Config
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log hears of offers refused and streams that failed; nil: nobody.
	Log *slog.Logger
}

func (c ResponderConfig) withDefaults() (ResponderConfig, error) {
	if c.Store == nil || c.Coders == nil || c.Serve == nil {
		return c, badConfig("Store, Coders and Serve are required")
	}
	if err := checkRepresentations(&c.Representations); err != nil {
		return c, err
	}
	for name := range c.Addresses {
		if !knownTransport(name) {
			return c, badConfig("unknown transport %q", name)
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
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Responder answers offers ([Responder.Handler]) and accepts streams ([Responder.ServeStreams]). All methods are safe for concurrent use.
type Responder struct {
	cfg ResponderConfig

	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	sessions map[SessionID]time.Time // until when each may be joined; zero: joined
	ended    []SessionID             // whose contexts still lie in the store, oldest first
	conns    int
	closers  map[any]func()
}

// NewResponder checks the configuration. Errors: BadConfig. The caller calls Close in the end.
func NewResponder(cfg ResponderConfig) (*Responder, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Responder{cfg: cfg, sessions: map[SessionID]time.Time{}, closers: map[any]func(){}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// errBusy is the reason to refuse an offer that could be met at another time.
var errBusy = errors.New("too many sessions")

// answer selects of an offer made at path, and keeps the session. Its error is a reason to be told.
func (r *Responder) answer(ctx context.Context, path string, o *Offer) (*Answer, error) {
	a := &Answer{Session: newSessionID(), Lifetime: min(cmpDefault(o.Lifetime, DefaultLifetime), r.cfg.MaxLifetime), RequestHead: defaultRequestFields, ReplyHead: defaultReplyFields}
	rand.Read(a.Token[:])
	if !slices.Contains(o.Schemes, Scheme) {
		return nil, fmt.Errorf("none of the schemes offered is %s", Scheme)
	}
	a.Scheme = Scheme
	for _, uri := range o.Representations {
		if slices.ContainsFunc(r.cfg.Representations, func(name string) bool { return RepresentationURI(name) == uri }) {
			a.Representation = uri
			break
		}
	}
	for _, uri := range o.Transports {
		for name, address := range r.cfg.Addresses {
			if a.Transport == "" && TransportURI(name) == uri {
				a.Transport, a.Address = uri, address
			}
		}
	}
	if a.Representation == "" || a.Transport == "" {
		return nil, errors.New("no representation or no transport in common")
	}
	var err error
	if a.Shapes, err = r.common(ctx, o.Shapes); err != nil {
		return nil, err
	}
	if !r.reserve(a.Session) {
		return nil, errBusy
	}
	if err := r.keep(ctx, path, o, a); err != nil {
		r.release(a.Session)
		return nil, err
	}
	return a, nil
}

func cmpDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// common gives those of the fingerprints whose shapes the store has.
func (r *Responder) common(ctx context.Context, offered [][32]byte) ([][32]byte, error) {
	if len(offered) == 0 {
		return nil, nil
	}
	wanted := make(map[[32]byte]bool, len(offered))
	for _, fp := range offered {
		wanted[fp] = true
	}
	var have [][32]byte
	// One listing instead of a look-up each: those would read the shapes themselves.
	for info, err := range r.cfg.Store.List(ctx, ctxstore.ShapePrefix) {
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			r.cfg.Log.Warn("shape not looked at", "err", err)
			continue
		}
		if fp, ok := ctxstore.ParseShapeURI(info.URI); ok && wanted[fp] {
			have = append(have, fp)
			delete(wanted, fp)
		}
	}
	return have, nil
}

// reserve makes room for a session; false when there is none.
func (r *Responder) reserve(id SessionID) bool {
	now := r.cfg.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sessions) >= r.cfg.MaxSessions {
		for id, until := range r.sessions {
			if !until.IsZero() && now.After(until) {
				delete(r.sessions, id)
			}
		}
	}
	if r.closed || len(r.sessions) >= r.cfg.MaxSessions {
		return false
	}
	r.sessions[id] = now.Add(r.cfg.JoinWithin)
	return true
}

func (r *Responder) release(id SessionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, id)
}

// keep writes the session's context. Until it is joined it expires when it may no longer be.
func (r *Responder) keep(ctx context.Context, path string, o *Offer, a *Answer) error {
	hash := sha256.Sum256(a.Token[:])
	c := contextDocument{
		Facts: Facts{
			Session: a.Session, Scheme: a.Scheme, Representation: a.Representation, Transport: a.Transport,
			Path: path, Address: a.Address, Expires: r.cfg.Clock.Now().Add(a.Lifetime), PeerShapes: o.Shapes,
		},
		TokenHash: hash[:],
	}
	document, err := c.marshal()
	if err != nil {
		return err
	}
	_, err = r.cfg.Store.Put(ctx, a.Session.URI(), document, ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: min(r.cfg.JoinWithin, a.Lifetime)})
	return err
}

// Close ends all streams, after what was accepted is written, makes ServeStreams return, and waits for all that it started. It is idempotent.
// Listeners are closed; Store and Coders are not.
func (r *Responder) Close() error {
	r.mu.Lock()
	r.closed = true
	closers := make([]func(), 0, len(r.closers))
	for _, c := range r.closers {
		closers = append(closers, c)
	}
	r.mu.Unlock()
	for _, c := range closers {
		r.wait.Go(c)
	}
	r.stop()
	r.wait.Wait()
	return nil
}

// onClose has f called by Close; the function returned takes that back. false: it is closed already.
func (r *Responder) onClose(f func()) (undo func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false
	}
	key := new(int)
	r.closers[key] = f
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.closers, key)
	}, true
}
