package responder

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
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
		go r.serveConn(ctx, conn, r.own, end)
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

// own makes the handler of the configuration serve the exchanges of a stream.
func (r *Responder) own(facts negotiate.Facts) Opened {
	served := newServed(&facts)
	o := Opened{Handler: r.dispatch(served), served: served}
	if r.cfg.OnStream != nil {
		o.Stream = func(s *streamer.Stream) { r.cfg.OnStream(facts, s) }
	}
	return o
}

// servedStream is one accepted stream.
type servedStream struct {
	r       *Responder
	client  remoteClient
	open    func(negotiate.Facts) Opened
	session negotiate.SessionID
	rejoins bool       // the session, which is joined, can be joined again
	known   [][32]byte // shapes that its peer had when it was joined
	joined  bool
	coder   streamer.Coder
	opened  Opened
	served  servedSession     // of opened, for the contexts of handlers
	headers unchanging.Lifter // unchanging headers of the session, once it is joined
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
	cfg.Kept = func(parts []streamer.KeptPart) {
		if v.entry != nil {
			v.entry.seq.Kept(parts)
		}
	}
	return cfg
}

// take prepares the stream for a session that is joined.
func (v *servedStream) take(ctx context.Context, j *joined, representation uint64) (err error) {
	r := v.r
	v.joined, v.session, v.rejoins, v.headers.Texts = true, j.facts.Session, j.token != nil, j.facts.Headers
	v.known = j.facts.PeerShapes
	contract := r.contract(j.facts.Path, j.facts.RequestDescription+j.facts.ReplyDescription != "")
	v.coder, err = r.cfg.Coders(ctx, coders.Spec{
		Representation: representation,
		Limits:         r.cfg.Stream.Limits,
		PeerKnows:      j.facts.PeerShapes,
		Schema:         r.replySchema(ctx, &j.facts),
		Contract:       contract,
		Shared:         isDescribed(contract, &j.facts),
	})
	return err
}

// admit opens the session that was taken for a connection.
func (v *servedStream) admit(ctx context.Context, j *joined, conn net.Conn) (a streamer.Admission, err error) {
	r, facts := v.r, &j.facts
	if r.cfg.OnSession != nil {
		r.cfg.OnSession(*facts, conn)
	}
	v.opened = v.open(*facts)
	if of := v.opened.served; of != nil {
		v.served.facts, v.served.path = of.facts, of.path
	}
	handler, quick := v.opened.Handler, v.opened.Quick
	if facts.Common != nil {
		handler, quick = r.takingFragments(facts, &v.headers, handler), nil
	}
	if facts.Sequence != "" {
		v.entry, v.left, err = r.enter(ctx, facts)
		if err != nil {
			r.cfg.Log.Warn("sequence not opened", "session", facts.Session.String(), "err", err)
			return a, &streamer.Refusal{CloseCode: streamer.CloseInternal, Text: "the sequence could not be opened"}
		}
		handler, quick = v.entry.seq.Handler(handler, r.cfg.Log), nil
	}
	return streamer.Admission{
		Coder:    v.coder,
		Handler:  handler,
		Quick:    quick,
		Token:    j.token,
		Lifetime: j.lifetime,
		Promised: j.promised,

		Description: j.description,
	}, nil
}

// live has a stream live until it ends, or ctx, or the responder is closed, and then calls end. No
// goroutine waits for that: there may be many streams, most of them idle.
func (v *servedStream) live(ctx context.Context, conn net.Conn, stream *streamer.Stream, end func()) {
	r := v.r
	r.cfg.Log.Info("stream", "peer", conn.RemoteAddr(), "session", v.session.String())
	if v.entry != nil {
		v.entry.attach(stream)
	}
	if v.opened.Stream != nil {
		v.opened.Stream(stream)
	}
	undo := r.stopWith(ctx, func() { _ = stream.Close() })
	stream.OnEnd(func() {
		defer end()
		undo()
		if err := stream.Close(); err != nil {
			r.cfg.Log.Info("stream ended", "peer", conn.RemoteAddr(), "session", v.session.String(), "err", err)
		}
	})
}

// stopWith has stop called when ctx is done, or when the responder is closed, until undo is called.
func (r *Responder) stopWith(ctx context.Context, stop func()) (undo func()) {
	undoClose, ok := r.onClose(stop)
	if !ok {
		go stop()
		return func() {}
	}
	if ctx.Done() == nil {
		return undoClose
	}
	undoDone := context.AfterFunc(ctx, stop)
	return func() {
		undoDone()
		undoClose()
	}
}

// end leaves the session, which may be joined again.
func (v *servedStream) end() {
	if v.joined {
		ctx, cancel := context.WithTimeout(context.Background(), negotiate.DefaultTimeout)
		defer cancel()
		if v.coder != nil && v.rejoins && coders.Learned(v.known, v.coder) {
			v.r.keepKnown(ctx, v.session, v.coder)
		}
		v.r.retire(ctx, v.session, v.headers.Texts)
	}
	v.left()
}

// opening returns the context in which the stream is opened, whose values are those of its
// handlers' contexts. It ends with ctx and with the responder.
func (v *servedStream) opening(ctx context.Context) (opening context.Context, cancel func()) {
	opening, stop := context.WithCancel(streamContext{ctx, v})
	undo := context.AfterFunc(v.r.ctx, stop)
	return opening, func() {
		undo()
		stop()
	}
}

// serveConn opens a stream over a connection that was opened for it, and has it served; end is
// called when it has ended.
func (r *Responder) serveConn(ctx context.Context, conn net.Conn, open func(negotiate.Facts) Opened, end func()) {
	from, accepted := requestOf(conn), conn
	if r.cfg.WrapConn != nil {
		conn = r.cfg.WrapConn(conn)
	}
	v := &servedStream{r: r, client: clientOf(from), open: open, left: func() {}}
	opening, cancel := v.opening(ctx)
	defer cancel()
	cfg := v.config()
	cfg.Accept = func(ctx context.Context, h streamer.Hello) (streamer.Admission, error) {
		j, err := r.enterSession(ctx, h, from)
		if err == nil {
			err = v.take(ctx, j, h.Representation)
		}
		if err != nil {
			return streamer.Admission{}, err
		}
		return v.admit(ctx, j, conn)
	}
	over := func() {
		v.end()
		end()
	}
	stream, err := streamer.Over(opening, netconn.Wrap(conn, accepted), cfg)
	if err != nil {
		r.cfg.Log.Info("stream refused", "peer", conn.RemoteAddr(), "err", err)
		over()
		return
	}
	v.live(ctx, conn, stream, over)
}

// remoteClient is the peer of a stream's connection, as net/http describes it for a request.
type remoteClient struct {
	remote string
	local  any
	tls    *tls.ConnectionState
}

func clientOf(req *http.Request) remoteClient {
	return remoteClient{req.RemoteAddr, req.Context().Value(http.LocalAddrContextKey), req.TLS}
}

// clientKey is the key of the client in the context of a handler.
type clientKey struct{}

// streamContext has the values of the contexts of a stream's handlers.
type streamContext struct {
	context.Context
	v *servedStream
}

// Value implements [context.Context].
func (c streamContext) Value(key any) any {
	switch key {
	case http.LocalAddrContextKey:
		return c.v.client.local
	case clientKey{}:
		return &c.v.client
	case servedKey{}:
		return &c.v.served
	}
	return c.Context.Value(key)
}

// requestOf returns what is known of a stream's connection, in the form of a request that came over
// it.
func requestOf(conn net.Conn) *http.Request {
	req := &http.Request{Method: http.MethodOptions, URL: &url.URL{Path: "/"}, Header: http.Header{},
		RemoteAddr: conn.RemoteAddr().String(), TLS: netconn.TLS(conn)}
	return req.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, conn.LocalAddr()))
}
