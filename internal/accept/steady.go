// Package accept keeps servers alive: a listener that waits out what clients can cause, and bounds
// on the connections that are open, in all and for each peer.
package accept

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
)

const (
	// pause is how long a listener rests that has no room for a connection, for want of file
	// descriptors, say.
	pause = 100 * time.Millisecond
	// calm is how long all must have gone well for the next failure to be worth another warning.
	calm = time.Minute
)

// passing are errors of Accept that are no end of the listener: a client that left, or want of what
// others hold.
var passing = []error{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

// Steady is a listener whose Accept fails only when l is closed, or broken for good. While file
// descriptors or memory are wanting it pauses and tries again; log gets one warning about each such
// time.
func Steady(l net.Listener, c clock.Clock, log *slog.Logger) net.Listener {
	return &steady{Listener: l, clock: c, log: log, closed: make(chan struct{})}
}

type steady struct {
	net.Listener
	clock  clock.Clock
	log    *slog.Logger
	once   sync.Once
	closed chan struct{}

	mu   sync.Mutex
	last time.Time // of the last failure
}

// Accept implements [net.Listener].
func (s *steady) Accept() (net.Conn, error) {
	for {
		conn, err := s.Listener.Accept()
		if err == nil || !passes(err) {
			return conn, err
		}
		s.warn(err)
		timer := s.clock.NewTimer(pause)
		select {
		case <-timer.C():
		case <-s.closed:
		}
		timer.Stop()
	}
}

// Close implements [net.Listener], and ends a pause.
func (s *steady) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Listener.Close()
}

func (s *steady) warn(err error) {
	s.mu.Lock()
	now := s.clock.Now()
	first := s.last.IsZero() || now.Sub(s.last) > calm
	s.last = now
	s.mu.Unlock()
	if first {
		s.log.Warn("cannot accept connections for now, and tries again", "listener", s.Addr(), "err", err)
	}
}

func passes(err error) bool {
	for _, e := range passing {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
