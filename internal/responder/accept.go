package responder

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// ServeStreams accepts streams on a listener until it fails, or Close is called; then it returns
// nil. It closes the listener. When ctx is done, that is like Close for this listener and its
// streams.
func (r *Responder) ServeStreams(ctx context.Context, listener net.Listener) error {
	listener = accept.Steady(listener, r.cfg.Clock, r.cfg.Log)
	undo, ok := r.onClose(func() { _ = listener.Close() })
	if !ok {
		_ = listener.Close()
		return &negotiate.Error{Code: negotiate.Closed, At: -1}
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
			return &negotiate.Error{Code: negotiate.Unreachable, At: -1, Err: err}
		}
		end, ok := r.enterConn(conn)
		if !ok {
			continue
		}
		go func() {
			defer end()
			r.serveStream(ctx, conn)
		}()
	}
}

// enterConn counts a connection until end is called. A connection beyond the limit is closed at
// once.
func (r *Responder) enterConn(conn net.Conn) (end func(), ok bool) {
	if end, ok = r.count(conn.RemoteAddr()); !ok {
		turnAway(conn)
	}
	return end, ok
}

// count reserves a slot for a connection, until end is called; false: there is none.
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

// turnAway ends a connection that nothing was written to, without waiting for the peer where it can
// be aborted. Closing may wait for a peer that never answers. Others would then wait as well: to be
// accepted after it, or for its slot in the listener.
func turnAway(conn net.Conn) {
	if _, ok := netconn.As[netconn.Aborter](conn); ok {
		_ = netconn.Abort(conn)
		return
	}
	_ = conn.Close()
}

// serveStream runs one connection to its end.
func (r *Responder) serveStream(ctx context.Context, conn net.Conn) {
	r.serveConn(ctx, conn, r.own)
}

// own makes the handler of the configuration serve the exchanges of a stream.
func (r *Responder) own(facts negotiate.Facts) Opened {
	o := Opened{Handler: r.dispatch(&facts)}
	if r.cfg.OnStream != nil {
		o.Stream = func(s *streamer.Stream) { r.cfg.OnStream(facts, s) }
	}
	return o
}

// servedStream is one accepted stream.
type servedStream struct {
	r       *Responder
	open    func(negotiate.Facts) Opened
	joined  *joined
	coder   streamer.Coder
	opened  Opened
	headers unchanging.Blocks // unchanging headers of the session, once it is joined
	entry   *sequenceEntry    // the stream's place in the session's sequence; nil: it has none
	left    func()            // leaves the sequence
}

// config returns what all accepted streams have in common.
func (v *servedStream) config() streamer.Config {
	cfg := v.r.cfg.Stream
	cfg.Initiator, cfg.Coder, cfg.Handler = false, nil, nil
	cfg.Outgoing, cfg.Incoming = v.headers.Outgoing, v.headers.Incoming
	cfg.Acks = func(octets []byte) {
		if v.entry != nil {
			v.entry.seq.Acks(octets)
		}
	}
	return cfg
}

// take prepares the stream for a session that is joined.
func (v *servedStream) take(ctx context.Context, j *joined, representation uint64) (err error) {
	r := v.r
	v.joined, v.headers.Texts = j, j.facts.Headers
	v.coder, err = r.cfg.Coders(ctx, coders.Spec{
		Representation: representation,
		Limits:         r.cfg.Stream.Limits,
		PeerKnows:      j.facts.PeerShapes,
		Schema:         r.replySchema(ctx, &j.facts),
	})
	return err
}

// admit opens the session for a connection.
func (v *servedStream) admit(ctx context.Context, conn net.Conn) (a streamer.Admission, err error) {
	r, facts := v.r, &v.joined.facts
	if r.cfg.OnSession != nil {
		r.cfg.OnSession(*facts, conn)
	}
	v.opened = v.open(*facts)
	handler := v.opened.Handler
	if facts.Sequence != "" {
		v.entry, v.left, err = r.enter(ctx, facts)
		if err != nil {
			r.cfg.Log.Warn("sequence not opened", "session", facts.Session.String(), "err", err)
			return a, &streamer.Refusal{CloseCode: streamer.CloseInternal, Text: "the sequence could not be opened"}
		}
		handler = v.entry.seq.Handler(handler, r.cfg.Log)
	}
	return streamer.Admission{
		Coder:    v.coder,
		Handler:  handler,
		Token:    v.joined.token,
		Lifetime: v.joined.lifetime,
		Promised: v.joined.promised,
	}, nil
}

// live runs a stream to its end.
func (v *servedStream) live(running context.Context, conn net.Conn, stream *streamer.Stream, err error) {
	r := v.r
	if err != nil {
		r.cfg.Log.Info("stream refused", "peer", conn.RemoteAddr(), "err", err)
		return
	}
	session := v.joined.facts.Session
	r.cfg.Log.Info("stream", "peer", conn.RemoteAddr(), "session", session.String())
	if v.entry != nil {
		v.entry.attach(stream)
	}
	if v.opened.Stream != nil {
		v.opened.Stream(stream)
	}
	select {
	case <-stream.Done():
	case <-running.Done():
	}
	if err := stream.Close(); err != nil {
		r.cfg.Log.Info("stream ended", "peer", conn.RemoteAddr(), "session", session.String(), "err", err)
	}
}

// end leaves the session, which may be joined again.
func (v *servedStream) end() {
	if v.joined != nil {
		ctx, cancel := context.WithTimeout(context.Background(), negotiate.DefaultTimeout)
		defer cancel()
		if v.coder != nil && v.joined.token != nil {
			v.r.keepKnown(ctx, v.joined.facts.Session, v.coder)
		}
		v.r.retire(ctx, &v.joined.facts)
	}
	v.left()
}

// running returns the context of a stream. hello ends with the server or the listener; the stream
// itself closes in order.
func (r *Responder) running(ctx context.Context, from client) (running context.Context, cancel func()) {
	running, stop := context.WithCancel(from.context(ctx))
	undo := context.AfterFunc(r.ctx, stop)
	return running, func() {
		undo()
		stop()
	}
}

// serveConn runs a stream over a connection that was opened for it, to its end.
func (r *Responder) serveConn(ctx context.Context, conn net.Conn, open func(negotiate.Facts) Opened) {
	from, accepted := requestOf(conn), conn
	if r.cfg.WrapConn != nil {
		conn = r.cfg.WrapConn(conn)
	}
	running, cancel := r.running(ctx, clientOf(from))
	defer cancel()
	v := &servedStream{r: r, open: open, left: func() {}}
	defer v.end()
	cfg := v.config()
	cfg.Accept = func(ctx context.Context, h streamer.Hello) (streamer.Admission, error) {
		j, err := r.enterSession(ctx, h, from)
		if err == nil {
			err = v.take(ctx, j, h.Representation)
		}
		if err != nil {
			return streamer.Admission{}, err
		}
		return v.admit(ctx, conn)
	}
	stream, err := streamer.Over(running, netconn.Wrap(conn, accepted), cfg)
	v.live(running, conn, stream, err)
}

// client is the peer of a stream's connection, as net/http describes it for a request.
type client struct {
	remote string
	local  any
	tls    *tls.ConnectionState
}

func clientOf(req *http.Request) client {
	return client{req.RemoteAddr, req.Context().Value(http.LocalAddrContextKey), req.TLS}
}

// clientKey is the key of the client in the context of a handler.
type clientKey struct{}

// context returns ctx with the client.
func (c client) context(ctx context.Context) context.Context {
	return context.WithValue(context.WithValue(ctx, http.LocalAddrContextKey, c.local), clientKey{}, c)
}

// requestOf returns what is known of a stream's connection, in the form of a request that came over
// it.
func requestOf(conn net.Conn) *http.Request {
	req := &http.Request{Method: http.MethodOptions, URL: &url.URL{Path: "/"}, Header: http.Header{},
		RemoteAddr: conn.RemoteAddr().String(), TLS: netconn.TLS(conn)}
	return req.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, conn.LocalAddr()))
}

// forget deletes the contexts of sessions that were dropped: they can no longer be joined.
func (r *Responder) forget(ctx context.Context, gone []dropped) {
	for _, d := range gone {
		if d.revision == 0 {
			continue
		}
		err := r.cfg.Store.Delete(ctx, d.id.URI(), ctxstore.If(d.revision))
		gone, joined := &ctxstore.Error{Code: ctxstore.NotFound}, &ctxstore.Error{Code: ctxstore.Conflict}
		if err != nil && !errors.Is(err, gone) && !errors.Is(err, joined) {
			r.cfg.Log.Warn("context of an unjoined session not deleted", "session", d.id.String(), "err", err)
		}
	}
}

// endedSession is a session whose context is still in the store, with the space that the context
// takes, in contexts without headers.
type endedSession struct {
	id     negotiate.SessionID
	weight int
}

// retire records that a session's stream has ended. Its context stays until it expires, for a peer
// that joins the session again and for decoding a recording; the number of such contexts is
// bounded.
func (r *Responder) retire(ctx context.Context, facts *negotiate.Facts) {
	const plain = 1 << 10 // bytes of a context without headers, roughly
	weight := 1
	for _, block := range facts.Headers {
		weight += 1 + len(block)/plain
	}
	if !r.registry.remove(facts.Session) {
		return
	}
	r.mu.Lock()
	r.ended = append(r.ended, endedSession{facts.Session, weight})
	r.endedWeight += weight
	var oldest []negotiate.SessionID
	for ; len(r.ended) > 1 && r.endedWeight > keptContexts*r.cfg.MaxSessions; r.ended = r.ended[1:] {
		oldest = append(oldest, r.ended[0].id)
		r.endedWeight -= r.ended[0].weight
	}
	r.mu.Unlock()
	if len(oldest) == 0 {
		return
	}
	for _, id := range oldest {
		err := r.cfg.Store.Delete(ctx, id.URI(), nil)
		if err != nil && !errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
			r.cfg.Log.Warn("context of an ended session not deleted", "session", id.String(), "err", err)
		}
	}
}

// unretire records that an ended session is joined again.
func (r *Responder) unretire(id negotiate.SessionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.ended, func(e endedSession) bool { return e.id == id }); i >= 0 {
		r.endedWeight -= r.ended[i].weight
		r.ended = slices.Delete(r.ended, i, i+1)
	}
}

// dispatch hands exchanges to Serve with their path.
func (r *Responder) dispatch(facts *negotiate.Facts) streamer.ExchangeHandler {
	return func(ctx context.Context, x *streamer.Exchange) {
		ctx = context.WithValue(ctx, factsKey{}, facts)
		r.cfg.Serve(ctx, pathFor(facts, x.Message().Head), x)
	}
}

// factsKey is the key of the session's facts in the context of a handler.
type factsKey struct{}

// FactsOf returns the facts of the session that a handler serves, from the context it got; nil if
// the context belongs to no session. They must not be changed.
func FactsOf(ctx context.Context) *negotiate.Facts {
	facts, _ := ctx.Value(factsKey{}).(*negotiate.Facts)
	return facts
}

// replySchema returns the schema that describes the replies of a session; nil if none does, or a
// shape does.
func (r *Responder) replySchema(ctx context.Context, facts *negotiate.Facts) *schema.Schema {
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
