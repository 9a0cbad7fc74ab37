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
	"github.com/hhfr/hhfr/internal/httpmsg"
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
	open := &openListener{listener}
	if !r.onClose(open) {
		_ = listener.Close()
		return &negotiate.Error{Code: negotiate.Closed, At: -1}
	}
	defer r.offClose(open)
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
		if v := r.enterConn(conn); v != nil {
			go v.serveConn(ctx, conn, r.own, nil)
		}
	}
}

// openListener is closed with the responder.
type openListener struct{ net.Listener }

// stop implements [closer].
func (l *openListener) stop() { _ = l.Close() }

// drain implements [closer].
func (l *openListener) drain() { _ = l.Close() }

// enterConn counts a connection until the end of its stream. For one beyond the limit it returns
// nil: its peer is told by a close frame, as long as few are told.
func (r *Responder) enterConn(conn net.Conn) *servedStream {
	v := r.count(conn.RemoteAddr().String())
	if v != nil {
		return v
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	leave, ok := r.beyond.Enter(conn.RemoteAddr())
	if !ok || r.closed {
		turnAway(conn)
		return nil
	}
	r.wait.Go(func() {
		defer leave()
		defer context.AfterFunc(r.ctx, func() { turnAway(conn) })()
		cfg := r.cfg.Stream
		cfg.Initiator, cfg.HelloTimeout = false, accept.RefusalTime
		cfg.Accept = func(context.Context, streamer.Hello) (a streamer.Admission, err error) { return a, busy() }
		_, _ = streamer.Over(r.ctx, conn, cfg) // it fails, and closes conn
	})
	return nil
}

// busy refuses a peer for which there is no slot.
func busy() error {
	return &streamer.Refusal{CloseCode: streamer.CloseLimits, Text: negotiate.Busy[0].Why}
}

// count reserves a slot for a connection, until end is called for its stream; nil: there is none.
func (r *Responder) count(peer string) *servedStream {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	v := &servedStream{r: r}
	if !r.conns.Take(&v.slot, peer) {
		return nil
	}
	r.wait.Add(1)
	return v
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
		begun := facts // most responders need none
		o.Stream = func(s *streamer.Stream) { r.cfg.OnStream(begun, s) }
	}
	return o
}

// servedStream is one accepted stream, with all that is kept for it: there may be many, most of
// them idle.
type servedStream struct {
	r               *Responder
	slot            accept.Slot
	context.Context // of its context
	client          remoteClient
	session         negotiate.SessionID
	rejoins         bool // the session, which is joined, can be joined again
	joined          bool
	known           [][32]byte // shapes that its peer had when it was joined
	coder           streamer.Coder
	served          *servedSession     // for the contexts of handlers; nil: of none
	headers         *unchanging.Lifter // unchanging headers of the session; nil: there can be none
	entry           *sequenceEntry     // the stream's place in the session's sequence; nil: it has none
	left            func()             // leaves the sequence; nil: there is none

	// Once it lives.
	conn   net.Conn
	stream *streamer.Stream
	undone func() bool // undoes what the context does at its end; nil: nothing
	over   func()      // called at the end; nil: nothing
}

// config returns what all streams have in common that were opened as such.
func (v *servedStream) config() streamer.Config {
	cfg := v.plainConfig()
	v.headers = new(unchanging.Lifter)
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

// plainConfig returns what all accepted streams have in common. With it alone a session has neither
// unchanging headers nor a sequence.
func (v *servedStream) plainConfig() streamer.Config {
	cfg := v.r.cfg.Stream
	cfg.Initiator, cfg.Coder, cfg.Handler = false, nil, nil
	cfg.Outgoing, cfg.Incoming, cfg.Acks, cfg.Kept = nil, nil, nil, nil
	return cfg
}

// take prepares the stream for a session that is joined.
func (v *servedStream) take(ctx context.Context, j *joined, representation uint64) (err error) {
	r := v.r
	v.joined, v.session, v.rejoins, v.known = true, j.facts.Session, j.token != nil, j.facts.PeerShapes
	if v.headers != nil {
		v.headers.Texts = j.facts.Headers
	}
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

// admit opens the session that was taken for a connection. begun is to be called with the stream;
// nil: nothing.
func (v *servedStream) admit(
	ctx context.Context, j *joined, conn net.Conn, open func(negotiate.Facts) Opened,
) (a streamer.Admission, begun func(*streamer.Stream), err error) {
	r, facts := v.r, &j.facts
	if r.cfg.OnSession != nil {
		r.cfg.OnSession(*facts, conn)
	}
	opened := open(*facts)
	if v.served = opened.served; v.served != nil {
		v.served.client = &v.client
	}
	handler, quick := opened.Handler, opened.Quick
	if facts.Common != nil {
		handler, quick = r.takingFragments(facts, v.headers, handler), nil
	}
	if facts.Sequence != "" {
		v.entry, v.left, err = r.enter(ctx, facts, accept.Peer(v.client.remote))
		if err != nil {
			r.cfg.Log.Warn("sequence not opened", "session", facts.Session.String(), "err", err)
			return a, nil, internalRefusal("the sequence could not be opened", err)
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
		Implied:     httpmsg.Implied(facts.Path),
	}, opened.Stream, nil
}

// live has a stream live until it ends, or ctx, or the responder is closed, and then calls over. No
// goroutine waits for that: there may be many streams, most of them idle. nil: nothing is to be
// called.
func (v *servedStream) live(
	ctx context.Context, conn net.Conn, stream *streamer.Stream, begun func(*streamer.Stream), over func(),
) {
	r := v.r
	v.conn, v.stream, v.over = conn, stream, over
	r.cfg.Log.Info("stream", "peer", conn.RemoteAddr(), "session", v.session.String())
	if v.entry != nil {
		v.entry.attach(stream)
	}
	if begun != nil {
		begun(stream)
	}
	switch {
	case !r.onClose(v):
		go v.stop()
	case ctx.Done() != nil:
		v.undone = context.AfterFunc(ctx, v.stop)
	}
	stream.OnEnd(v.ended)
}

// stop implements [closer].
func (v *servedStream) stop() { _ = v.stream.Close() }

// drain implements [closer].
func (v *servedStream) drain() { v.stream.Drain() }

// ended is the end of a stream that lived.
func (v *servedStream) ended() {
	r := v.r
	defer v.end()
	if v.undone != nil {
		v.undone()
	}
	r.offClose(v)
	if err := v.stream.Close(); err != nil {
		r.cfg.Log.Info("stream ended", "peer", v.conn.RemoteAddr(), "session", v.session.String(), "err", err)
	}
}

// end leaves the session, which may be joined again, and gives the slot back; over is called then.
func (v *servedStream) end() {
	if v.over != nil {
		defer v.over()
	}
	defer v.r.wait.Done()
	defer v.slot.Leave()
	if v.joined {
		ctx, cancel := context.WithTimeout(context.Background(), negotiate.DefaultTimeout)
		defer cancel()
		if v.coder != nil && v.rejoins && coders.Learned(v.known, v.coder) {
			v.r.keepKnown(ctx, v.session, v.coder)
		}
		var headers []string
		if v.headers != nil {
			headers = v.headers.Texts
		}
		v.r.retire(ctx, v.session, headers)
	}
	if v.left != nil {
		v.left()
	}
}

// opening returns the context in which the stream is opened, whose values are those of its
// handlers' contexts. It ends with ctx and with the responder.
func (v *servedStream) opening(ctx context.Context) (opening context.Context, cancel func()) {
	v.Context = ctx
	opening, stop := context.WithCancel((*streamContext)(v))
	undo := context.AfterFunc(v.r.ctx, stop)
	return opening, func() {
		undo()
		stop()
	}
}

// serveConn opens a stream over a connection that was opened for it, and has it served.
func (v *servedStream) serveConn(ctx context.Context, conn net.Conn, open func(negotiate.Facts) Opened, over func()) {
	r, from, accepted := v.r, requestOf(conn), conn
	if r.cfg.WrapConn != nil {
		conn = r.cfg.WrapConn(conn)
	}
	v.client = clientOf(from)
	opening, cancel := v.opening(ctx)
	defer cancel()
	cfg := v.config()
	var begun func(*streamer.Stream)
	cfg.Accept = func(ctx context.Context, h streamer.Hello) (a streamer.Admission, err error) {
		j, err := r.enterSession(ctx, h, from)
		if err == nil {
			err = v.take(ctx, j, h.Representation)
		}
		if err != nil {
			return a, err
		}
		a, begun, err = v.admit(ctx, j, conn, open)
		return a, err
	}
	stream, err := streamer.Over(opening, netconn.Wrap(conn, accepted), cfg)
	if err != nil {
		r.cfg.Log.Info("stream refused", "peer", conn.RemoteAddr(), "err", err)
		v.over = over
		v.end()
		return
	}
	v.live(ctx, conn, stream, begun, over)
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

// streamContext is a stream as the context whose values those of its handlers have.
type streamContext servedStream

// Value implements [context.Context].
func (c *streamContext) Value(key any) any {
	switch key {
	case http.LocalAddrContextKey:
		return c.client.local
	case servedKey{}:
		return c.served
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
