// Package accept keeps servers running: a listener that waits out the failures that clients can
// cause, and bounds on the open connections, in all and for each peer, with a reply for those
// beyond.
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
	// pause is how long a listener waits when it cannot accept a connection, for example for want
	// of file descriptors.
	pause = 100 * time.Millisecond
	// calm is how long there must be no failure for the next one to be logged again.
	calm = time.Minute
)

// passing are errors of Accept that do not end the listener: a client that left, or a shortage of
// resources.
var passing = []error{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

// Steady is a listener whose Accept fails only when l is closed, or permanently broken. While file
// descriptors or memory are short it pauses and retries; log gets one warning for each such period.
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
