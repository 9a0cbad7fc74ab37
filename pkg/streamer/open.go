package streamer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
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
	h, err := newHandshake(conn, cfg)
	if err != nil {
		return nil, err
	}
	if err := h.meet(ctx, h.introduce); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return h.start(ctx, func() {}), nil
}

// start has reader and writer run, once ready has seen to the exchanges that there are already.
func (h *handshake) start(ctx context.Context, ready func()) *Stream {
	s := h.s
	s.cfg, s.origin, s.ctx.stream = h.cfg.lasting(), frame.OriginOf(h.hello), context.WithoutCancel(ctx)
	limits := s.peer.Load().Limits
	s.queue = newQueue(&h.cfg, limits)
	s.exchanges.init(s, limits)
	r, w := newReader(s, h.in), newWriter(h, limits)
	s.queue.wake, s.queue.now, s.queue.take = w.wake, w.writeNow, w.take
	if !s.met.given.Load() {
		within := h.cfg.HelloTimeout
		s.awaited = time.AfterFunc(within, func() { s.unmet(within) })
	}
	s.running.Store(2)
	ready()
	w.wake(true) // what ready has queued
	go r.run()
	return s
}

// unmet ends a stream whose peer's hello has not come in time.
func (s *Stream) unmet(within time.Duration) {
	if !s.met.given.Load() {
		s.fail(&Error{Code: Closed, Err: fmt.Errorf("no hello of the peer within %v", within)})
	}
}
