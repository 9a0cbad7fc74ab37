package negotiate

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/sequence"
)

// ServeStreams accepts streams on a listener until it fails, or Close is called; then it returns nil. It closes the listener. ctx does the same
// as Close, for this listener and its streams.
func (r *Responder) ServeStreams(ctx context.Context, listener net.Listener) error {
	listener = accept.Steady(listener, r.cfg.Clock, r.cfg.Log)
	undo, ok := r.onClose(func() { _ = listener.Close() })
	if !ok {
		_ = listener.Close()
		return &Error{Code: Closed, At: -1}
	}
	defer undo()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil || r.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			_ = listener.Close()
			return &Error{Code: Unreachable, At: -1, Err: err}
		}
		end, ok := r.begin(conn)
		if !ok {
			continue
		}
		go func() {
			defer end()
			r.serveStream(ctx, conn)
		}()
	}
}

// begin counts a connection until end; one for which there is no room is ended at once.
func (r *Responder) begin(conn net.Conn) (end func(), ok bool) {
	if end, ok = r.count(conn.RemoteAddr()); !ok {
		turnAway(conn)
	}
	return end, ok
}

// count takes a place for a connection, until end; false: there is none.
func (r *Responder) count(peer net.Addr) (end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false
	}
	leave, ok := r.conns.Enter(peer)
	if !ok {
		return nil, false
	}
	r.wait.Add(1)
	return func() {
		leave()
		r.wait.Done()
	}, true
}

// turnAway ends a connection that nothing was written to. Where closing waits for the other end, which may never
// answer, others would wait as well: to be accepted behind it, or for the place that it has in its listener.
func turnAway(conn net.Conn) {
	if a, ok := conn.(interface{ Abort() error }); ok {
		_ = a.Abort()
		return
	}
	_ = conn.Close()
}

// serveStream runs one connection to its end.
func (r *Responder) serveStream(ctx context.Context, conn net.Conn) {
	if r.cfg.WrapConn != nil {
		conn = r.cfg.WrapConn(conn)
	}
	// Hello ends with the server or the listener; the stream itself ends in order, by Close below.
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	var facts *Facts
	var q *sequence.Sequence
	left := func() {}
	defer func() { left() }()
	cfg, headers := r.accepting()
	cfg.Accept = func(ctx context.Context, h streamer.Hello) (streamer.Admission, error) {
		joined, err := r.join(ctx, h, accept.Peer(conn.RemoteAddr().String()))
		if err != nil {
			return streamer.Admission{}, err
		}
		facts, headers.blocks = joined, joined.Headers
		coder, err := r.cfg.Coders(ctx, CoderSpec{Representation: h.Representation, Limits: r.cfg.Stream.Limits, PeerKnows: facts.PeerShapes, Schema: r.replySchema(ctx, facts)})
		if err != nil {
			return streamer.Admission{}, err
		}
		if r.cfg.OnSession != nil {
			r.cfg.OnSession(*facts, conn)
		}
		handler := r.dispatch(facts)
		if facts.Sequence != "" {
			var leave func()
			q, leave, err = r.enter(ctx, facts)
			left = leave
			if err != nil {
				r.cfg.Log.Warn("sequence not opened", "session", facts.Session.String(), "err", err)
				return streamer.Admission{}, &streamer.Refusal{CloseCode: streamer.CloseInternal, Text: "the sequence could not be opened"}
			}
			handler = placed(q, handler, r.cfg.Log)
		}
		return streamer.Admission{Coder: coder, Handler: handler}, nil
	}
	cfg.Acks = func(octets []byte) {
		if q != nil {
			q.Acks(octets)
		}
	}
	stream, err := streamer.Over(running, conn, cfg)
	if facts != nil {
		defer r.retire(facts)
	}
	if err != nil {
		r.cfg.Log.Info("stream refused", "peer", conn.RemoteAddr(), "err", err)
		return
	}
	r.cfg.Log.Info("stream", "peer", conn.RemoteAddr(), "session", facts.Session.String())
	if q != nil {
		q.Attach(stream)
	}
	if r.cfg.OnStream != nil {
		r.cfg.OnStream(*facts, stream)
	}
	select {
	case <-stream.Done():
	case <-running.Done():
	}
	if err := stream.Close(); err != nil {
		r.cfg.Log.Info("stream ended", "peer", conn.RemoteAddr(), "session", facts.Session.String(), "err", err)
	}
}

// accepting is what all streams that are accepted have in common. The headers are those of the
// session, once it is joined.
func (r *Responder) accepting() (streamer.Config, *unchanging) {
	cfg, headers := r.cfg.Stream, &unchanging{}
	cfg.Initiator, cfg.Coder, cfg.Handler = false, nil, nil
	cfg.Outgoing, cfg.Incoming = headers.outgoing, headers.incoming
	return cfg, headers
}

// refusedSession is what a peer is told whatever was wrong with its session or token: not which.
func refusedSession() error {
	return &streamer.Refusal{CloseCode: streamer.CloseUnknownSession, Text: "session or token not accepted"}
}

// join finds the session that a peer's hello names and takes it: nobody joins with the same token
// again.
func (r *Responder) join(ctx context.Context, h streamer.Hello, peer string) (*Facts, error) {
	id := SessionID(h.Session)
	entry, err := r.cfg.Store.Get(ctx, id.URI())
	if err != nil {
		if errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
			return nil, refusedSession()
		}
		r.cfg.Log.Warn("session not looked up", "session", id.String(), "err", err)
		return nil, &streamer.Refusal{CloseCode: streamer.CloseInternal, Text: "the context store failed"}
	}
	c, err := parseContext(entry.Value)
	if err != nil {
		r.cfg.Log.Warn("session not read", "session", id.String(), "err", err)
		return nil, refusedSession()
	}
	now := r.cfg.Clock.Now()
	if !c.admits(id, h.Token, now) {
		return nil, refusedSession()
	}
	if number, _ := representationNumber(c.Representation); number != h.Representation {
		return nil, &streamer.Refusal{CloseCode: streamer.CloseUnsupported, Text: "another representation was agreed on"}
	}
	if (h.Stages&streamer.Headers != 0) != (len(c.Headers) > 0) {
		return nil, &streamer.Refusal{CloseCode: streamer.CloseUnsupported, Text: "something else was agreed on unchanging headers"}
	}
	facts := c.Facts
	// The token is spent, and what the other end has is the coder's to know: neither need be kept.
	c.TokenHash, c.PeerShapes = nil, nil
	document, err := c.marshal()
	if err != nil {
		return nil, err
	}
	_, err = r.cfg.Store.Put(ctx, id.URI(), document, ctxstore.PutOptions{IfRevision: ctxstore.If(entry.Revision), TTL: c.Expires.Sub(now)})
	switch {
	case errors.Is(err, &ctxstore.Error{Code: ctxstore.Conflict}):
		return nil, refusedSession()
	case err != nil:
		r.cfg.Log.Warn("session not kept", "session", id.String(), "err", err)
		return nil, &streamer.Refusal{CloseCode: streamer.CloseInternal, Text: "the context store failed"}
	}
	gone, ok := r.registry.join(id, peer)
	r.forget(ctx, gone)
	if !ok {
		return nil, &streamer.Refusal{CloseCode: streamer.CloseLimits, Text: errBusy[0].Why}
	}
	return &facts, nil
}

// forget deletes the contexts of sessions that made room: nobody joins them any more.
func (r *Responder) forget(ctx context.Context, gone []dropped) {
	for _, d := range gone {
		if d.revision == 0 {
			continue
		}
		err := r.cfg.Store.Delete(ctx, d.id.URI(), ctxstore.If(d.revision))
		gone, joined := &ctxstore.Error{Code: ctxstore.NotFound}, &ctxstore.Error{Code: ctxstore.Conflict}
		if err != nil && !errors.Is(err, gone) && !errors.Is(err, joined) {
			r.cfg.Log.Warn("context of a session that nobody joined not deleted", "session", d.id.String(), "err", err)
		}
	}
}

// endedSession is a session whose context still lies in the store, and how much room that takes, in
// contexts without headers.
type endedSession struct {
	id     SessionID
	weight int
}

// retire notes that a session's stream has ended. Its context stays until it expires, for whoever decodes a recording, but only so many do.
func (r *Responder) retire(facts *Facts) {
	const plain = 1 << 10 // octets of a context without headers, or so
	weight := 1
	for _, block := range facts.Headers {
		weight += 1 + len(block)/plain
	}
	r.registry.remove(facts.Session)
	r.mu.Lock()
	r.ended = append(r.ended, endedSession{facts.Session, weight})
	r.endedWeight += weight
	var oldest []SessionID
	for ; len(r.ended) > 1 && r.endedWeight > keptContexts*r.cfg.MaxSessions; r.ended = r.ended[1:] {
		oldest = append(oldest, r.ended[0].id)
		r.endedWeight -= r.ended[0].weight
	}
	r.mu.Unlock()
	if len(oldest) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), DefaultTimeout)
	defer cancel()
	for _, id := range oldest {
		err := r.cfg.Store.Delete(ctx, id.URI(), nil)
		if err != nil && !errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
			r.cfg.Log.Warn("context of an ended session not deleted", "session", id.String(), "err", err)
		}
	}
}

// dispatch hands exchanges to Serve with the path they are for.
func (r *Responder) dispatch(facts *Facts) streamer.Handler {
	return func(ctx context.Context, x *streamer.Exchange) {
		ctx = context.WithValue(ctx, factsKey{}, facts)
		r.cfg.Serve(ctx, pathFor(facts, x.Message().Head), x)
	}
}

// factsKey is where the context of a handler has the session's facts.
type factsKey struct{}

// FactsOf gives the facts of the session that a handler serves, by the context it got; nil if it is of no session. They must not be changed.
func FactsOf(ctx context.Context) *Facts {
	facts, _ := ctx.Value(factsKey{}).(*Facts)
	return facts
}

// replySchema is the schema that the replies of a session were described by; nil if they were not, or by a shape.
func (r *Responder) replySchema(ctx context.Context, facts *Facts) *schema.Schema {
	if r.cfg.ReplySchema != nil {
		if own := r.cfg.ReplySchema(unescaped(facts.Path)); own != nil {
			return own
		}
	}
	if !strings.HasPrefix(facts.ReplyDescription, schema.URIPrefix) {
		return nil
	}
	entry, err := r.cfg.Store.Get(ctx, facts.ReplyDescription)
	if err != nil {
		r.cfg.Log.Warn("schema of replies not found", "schema", facts.ReplyDescription, "err", err)
		return nil
	}
	s, err := schema.Parse(entry.Value)
	if err != nil {
		r.cfg.Log.Warn("schema of replies not read", "schema", facts.ReplyDescription, "err", err)
		return nil
	}
	return s
}

func unescaped(path string) string {
	if p, err := url.PathUnescape(path); err == nil {
		return p
	}
	return path
}
