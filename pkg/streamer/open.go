package streamer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/netconn"
)

// Over makes a stream of a connection: it exchanges hellos and starts reader and writer. It owns
// conn from now on, also when it fails. ctx bounds the hellos; the contexts of handlers have its
// values. Errors are *[Error]; with Remote, the code says why the peer refused (a refusal that
// comes late ends the stream instead).
func Over(ctx context.Context, conn net.Conn, cfg Config) (*Stream, error) {
	if cfg.Initiator && len(cfg.Token) == 0 && cfg.Target == "" {
		_ = conn.Close()
		return nil, &Error{Code: BadConfig, Err: errors.New("neither token nor target")}
	}
	s, err := newStream(conn, cfg)
	if err != nil {
		return nil, err
	}
	h := newHandshake(s)
	if err := h.meet(ctx, h.introduce); err != nil {
		_ = conn.Close()
		return nil, err
	}
	s.start(ctx, h.in, func() {})
	return s, nil
}

// newStream checks the configuration; it closes conn if that does not hold together.
func newStream(conn net.Conn, cfg Config) (*Stream, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &Stream{conn: netconn.Of(conn), cfg: cfg, coder: cfg.Coder, handler: cfg.Handler, met: make(chan struct{})},
		nil
}

// start has reader and writer run, once ready has seen to the exchanges that there are already.
func (s *Stream) start(ctx context.Context, in *readBuffer, ready func()) {
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.done, s.mute = make(chan struct{}), make(chan struct{})
	limits := s.peer.Load().Limits
	s.queue = newQueue(&s.cfg, limits)
	s.exchanges.init(s, limits)
	r, w := newReader(s, in), newWriter(s, limits)
	s.awaited = time.AfterFunc(s.cfg.HelloTimeout, s.unmet)
	ready()
	var ends sync.WaitGroup
	ends.Go(r.run)
	ends.Go(w.run)
	go func() {
		ends.Wait()
		s.finish()
	}()
}

// unmet ends a stream whose peer's hello has not come in time.
func (s *Stream) unmet() {
	select {
	case <-s.met:
	default:
		s.fail(&Error{Code: Closed, Err: fmt.Errorf("no hello of the peer within %v", s.cfg.HelloTimeout)})
	}
}
