package responder

import (
	"context"
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

// servedStream is one accepted stream, with all that is kept for it: there may be many, most of
// them idle.
type servedStream struct {
	by              *streams
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
	cfg := v.by.cfg.Stream
	cfg.Initiator, cfg.Coder, cfg.Handler = false, nil, nil
	cfg.Outgoing, cfg.Incoming, cfg.Acks, cfg.Kept = nil, nil, nil, nil
	return cfg
}

// take prepares the stream for a session that is joined.
func (v *servedStream) take(ctx context.Context, j *joined, representation uint64) (err error) {
	s := v.by
	v.joined, v.session, v.rejoins, v.known = true, j.facts.Session, j.token != nil, j.facts.PeerShapes
	if v.headers != nil {
		v.headers.Texts = j.facts.Headers
	}
	contract := s.descriptions.contract(j.facts.Path, j.facts.RequestDescription+j.facts.ReplyDescription != "")
	v.coder, err = s.cfg.Coders(ctx, coders.Spec{
		Representation: representation,
		Limits:         s.cfg.Stream.Limits,
		PeerKnows:      j.facts.PeerShapes,
		Schema:         s.descriptions.replySchema(ctx, &j.facts),
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
	s, facts := v.by, &j.facts
	if s.cfg.OnSession != nil {
		s.cfg.OnSession(*facts, conn)
	}
	opened := open(*facts)
	if v.served = opened.served; v.served != nil {
		v.served.client = &v.client
	}
	handler, quick := opened.Handler, opened.Quick
	if facts.Common != nil {
		handler, quick = s.fragments.taking(facts, v.headers, handler), nil
	}
	if facts.Sequence != "" {
		v.entry, v.left, err = s.sequences.enter(ctx, facts, accept.Peer(v.client.remote))
		if err != nil {
			s.cfg.Log.Warn("sequence not opened", "session", facts.Session.String(), "err", err)
			return a, nil, internalRefusal("the sequence could not be opened", err)
		}
		handler, quick = v.entry.seq.Handler(handler, s.cfg.Log), nil
	}
	return streamer.Admission{
		Coder:    v.coder,
		Handler:  handler,
		Quick:    quick,
		Token:    j.token,
		Lifetime: j.lifetime,
		Promised: j.early(),

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
	s := v.by
	v.conn, v.stream, v.over = conn, stream, over
	s.cfg.Log.Info("stream", "peer", conn.RemoteAddr(), "session", v.session.String())
	if v.entry != nil {
		v.entry.attach(stream)
	}
	if begun != nil {
		begun(stream)
	}
	switch {
	case !s.life.onClose(v):
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
	s := v.by
	defer v.end()
	if v.undone != nil {
		v.undone()
	}
	s.life.offClose(v)
	if err := v.stream.Close(); err != nil {
		s.cfg.Log.Info("stream ended", "peer", v.conn.RemoteAddr(), "session", v.session.String(), "err", err)
	}
}

// end leaves the session, which may be joined again, and gives the slot back; over is called then.
func (v *servedStream) end() {
	if v.over != nil {
		defer v.over()
	}
	defer v.by.life.leave()
	defer v.slot.Leave()
	if v.joined {
		ctx, cancel := context.WithTimeout(context.Background(), negotiate.DefaultTimeout)
		defer cancel()
		if v.coder != nil && v.rejoins && coders.Learned(v.known, v.coder) {
			v.by.sessions.keepKnown(ctx, v.session, v.coder)
		}
		var headers []string
		if v.headers != nil {
			headers = v.headers.Texts
		}
		v.by.sessions.left(ctx, v.session, headers)
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
	undo := context.AfterFunc(v.by.life.ctx, stop)
	return opening, func() {
		undo()
		stop()
	}
}

// serveConn opens a stream over a connection that was opened for it, and has it served.
func (v *servedStream) serveConn(ctx context.Context, conn net.Conn, open func(negotiate.Facts) Opened, over func()) {
	s, from, accepted := v.by, requestOf(conn), conn
	if s.cfg.WrapConn != nil {
		conn = s.cfg.WrapConn(conn)
	}
	v.client = clientOf(from)
	opening, cancel := v.opening(ctx)
	defer cancel()
	cfg := v.config()
	var begun func(*streamer.Stream)
	cfg.Accept = func(ctx context.Context, h streamer.Hello) (a streamer.Admission, err error) {
		j, err := s.joins.enterSession(ctx, h, from)
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
		s.cfg.Log.Info("stream refused", "peer", conn.RemoteAddr(), "err", err)
		v.over = over
		v.end()
		return
	}
	v.live(ctx, conn, stream, begun, over)
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
		RemoteAddr: conn.RemoteAddr().String(), TLS: httpmsg.TLS(conn)}
	return req.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, conn.LocalAddr()))
}
