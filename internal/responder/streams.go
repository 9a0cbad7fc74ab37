package responder

import (
	"context"
	"errors"
	"net"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// streams accepts streams and has them served. All methods are safe for concurrent use.
type streams struct {
	cfg          *Config
	life         *life
	sessions     *sessions
	joins        *joins
	descriptions *descriptions
	sequences    *sequences
	fragments    fragments
	serve        exchangeServer
	conns        accept.Room
	beyond       accept.Refusals
}

// exchangeServer serves the exchanges of a session whose stream is not served by a caller of
// [Responder.ServeConn].
type exchangeServer func(ctx context.Context, s *servedSession, x *streamer.Exchange)

// listen accepts streams on a listener, as [Responder.ServeStreams] does.
func (s *streams) listen(ctx context.Context, listener net.Listener) error {
	listener = accept.Steady(listener, s.cfg.Clock, s.cfg.Log)
	open := &openListener{listener}
	if !s.life.onClose(open) {
		_ = listener.Close()
		return nil
	}
	defer s.life.offClose(open)
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil || s.life.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			_ = listener.Close()
			return &negotiate.Error{Code: negotiate.Unreachable, At: -1, Err: err}
		}
		if v := s.enterConn(conn); v != nil {
			go v.serveConn(ctx, conn, s.own, nil)
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
func (s *streams) enterConn(conn net.Conn) *servedStream {
	v := s.count(conn.RemoteAddr().String())
	if v != nil {
		return v
	}
	leave, ok := s.beyond.Enter(conn.RemoteAddr())
	if !ok {
		turnAway(conn)
		return nil
	}
	if !s.life.run(func(ctx context.Context) {
		defer leave()
		defer context.AfterFunc(ctx, func() { turnAway(conn) })()
		cfg := s.cfg.Stream
		cfg.Initiator, cfg.HelloTimeout = false, accept.RefusalTime
		cfg.Accept = func(context.Context, streamer.Hello) (a streamer.Admission, err error) { return a, busy() }
		_, _ = streamer.Over(ctx, conn, cfg) // it fails, and closes conn
	}) {
		leave()
		turnAway(conn)
	}
	return nil
}

// count reserves a slot for a connection, until end is called for its stream; nil: there is none.
func (s *streams) count(peer string) *servedStream {
	if !s.life.enter() {
		return nil
	}
	v := &servedStream{by: s}
	if !s.conns.Take(&v.slot, peer) {
		s.life.leave()
		return nil
	}
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
func (s *streams) own(facts negotiate.Facts) Opened {
	served := newServed(&facts)
	o := Opened{Handler: func(ctx context.Context, x *streamer.Exchange) { s.serve(ctx, served, x) }, served: served}
	if s.cfg.OnStream != nil {
		begun := facts // most responders need none
		o.Stream = func(opened *streamer.Stream) { s.cfg.OnStream(begun, opened) }
	}
	return o
}
