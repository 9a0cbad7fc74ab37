package responder

import (
	"context"
	"net"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// New checks the configuration. The caller must call Close in the end. Errors: BadConfig.
func New(cfg Config) (*Responder, error) {
	if cfg.Serve == nil {
		return nil, negotiate.BadConfigf("Serve is required")
	}
	return serving(cfg, func(ctx context.Context, s *servedSession, x *streamer.Exchange) {
		cfg.Serve(ctx, s.pathFor(x.Message().Head), x)
	})
}

// serving is New with what serves exchanges.
func serving(cfg Config, serve exchangeServer) (*Responder, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Responder{cfg: &cfg, life: newLife()}
	r.restorer = cfg.Common.Restorer(cfg.Store, cfg.Archive, cfg.Clock, cfg.Log)
	r.sessions = newSessions(r.cfg, r.life)
	r.descriptions = &descriptions{r.cfg}
	kept := &sequences{cfg: r.cfg, ctx: r.life.ctx}
	r.offers = &offers{r.cfg, r.sessions, kept, r.descriptions, r.restorer}
	r.joins = &joins{r.cfg, r.sessions, r.descriptions}
	r.streams = &streams{cfg: r.cfg, life: r.life, sessions: r.sessions, joins: r.joins,
		descriptions: r.descriptions, sequences: kept,
		fragments: fragments{r.cfg, r.restorer}, serve: serve,
		conns: accept.Room{Max: cfg.MaxSessions, PerPeer: cfg.MaxPerPeer, Log: cfg.Log}}
	return r, nil
}

// ServeStreams accepts streams on a listener until it fails, or Close is called, also before it;
// then it returns nil. It closes the listener. When ctx is done, that is like Close for this
// listener and its streams.
func (r *Responder) ServeStreams(ctx context.Context, listener net.Listener) error {
	return r.streams.listen(ctx, listener)
}

// ServeConn runs one stream over a connection that the caller accepted, to its end. It is
// [Responder.ServeStreams] for callers that treat each stream apart: open is called when a session
// is joined, and what it returns serves this stream alone. Serve and OnStream of the configuration
// are not used. ServeConn owns conn. It returns false at once when there are too many connections,
// or the responder is closed.
func (r *Responder) ServeConn(ctx context.Context, conn net.Conn, open func(negotiate.Facts) Opened) bool {
	v := r.streams.enterConn(conn)
	if v == nil {
		return false
	}
	over := make(chan struct{})
	v.serveConn(ctx, conn, open, func() { close(over) })
	<-over
	return true
}

// Close ends all streams, after what was accepted is written, makes ServeStreams return, and waits
// for everything that it started. It is idempotent. Listeners are closed; Store and Coders are not.
func (r *Responder) Close() error {
	r.sessions.close()
	r.life.close()
	return nil
}

// Shutdown is Close for what takes longer: it accepts nothing more, lets nothing begin on the
// streams, and waits until what is under way there is over and they have ended in order, or until
// ctx is done. Then its error is the cause of that, and what is left goes on until Close.
func (r *Responder) Shutdown(ctx context.Context) error {
	if err := r.life.drain(ctx); err != nil {
		return err
	}
	return r.Close()
}

// Knows reports whether a stream with this session and token could be joined here. It does not use
// up the token.
func (r *Responder) Knows(ctx context.Context, id negotiate.SessionID, token []byte) bool {
	entry, err := r.cfg.Store.Get(ctx, id.URI())
	if err != nil {
		return false
	}
	c, err := negotiate.ParseContext(entry.Value)
	return err == nil && c.Admits(id, token, r.cfg.Clock.Now())
}
