package bench

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/pkg/clock"
)

// bufferedConn is one end of a connection, like a kernel's: writers do not wait for the line, and
// what is written at one moment leaves together. It uses no real time, so that sessions can run in
// virtual time.
type bufferedConn struct {
	net.Conn
	clock clock.Clock

	mu     sync.Mutex
	buf    []byte
	ended  bool // nothing more is written
	closed bool
	err    error
	wake   chan struct{}
}

// Write implements [net.Conn]. Errors are those of what was written before.
func (s *bufferedConn) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return 0, s.err
	case s.ended:
		return 0, io.ErrClosedPipe
	}
	s.buf = append(s.buf, p...)
	s.wakeLocked()
	return len(p), nil
}

func (s *bufferedConn) wakeLocked() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// SetDeadline implements [net.Conn]. No write waits, so the deadline is that of reads.
func (s *bufferedConn) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetWriteDeadline implements [net.Conn]. What was written before is sent nevertheless.
func (s *bufferedConn) SetWriteDeadline(time.Time) error { return nil }

// CloseWrite ends the writing direction after what was written.
func (s *bufferedConn) CloseWrite() error { return s.end(false) }

// Close implements [net.Conn]. What was written still arrives.
func (s *bufferedConn) Close() error { return s.end(true) }

func (s *bufferedConn) end(whole bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.closed = true, s.closed || whole
	s.wakeLocked()
	return nil
}

// pump sends what was written, until the end.
func (s *bufferedConn) pump() {
	half := false
	for range s.wake {
		// A moment of the link's clock is over when no goroutine computes any more.
		_ = s.clock.Sleep(context.Background(), time.Nanosecond)
		s.mu.Lock()
		p, ended, closed := s.buf, s.ended, s.closed
		s.buf = nil
		s.mu.Unlock()
		if len(p) > 0 {
			if _, err := s.Conn.Write(p); err != nil {
				s.mu.Lock()
				s.err = err
				s.mu.Unlock()
			}
		}
		switch {
		case closed:
			_ = s.Conn.Close() // what was written is on its way
			return
		case ended && !half:
			half = true
			_ = netconn.CloseWrite(s.Conn) // all connections here implement it
		}
	}
}

// socketBuffer holds what a peer has not read yet, in bytes, in each direction.
const socketBuffer = 128 << 10

// sockets are those of a session's two peers: what listens beyond the link does so in this process.
type sockets struct {
	beyond inproc.Transport
	clock  clock.Clock

	mu    sync.Mutex
	all   []*bufferedConn
	pumps sync.WaitGroup
}

func newSockets(c clock.Clock) *sockets {
	return &sockets{beyond: inproc.Transport{Buffer: socketBuffer}, clock: c}
}

// over is a socket over a connection.
func (s *sockets) over(conn net.Conn) net.Conn {
	one := &bufferedConn{Conn: conn, clock: s.clock, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, one)
	s.pumps.Go(one.pump)
	return one
}

// close closes the unowned ones, and waits until everything written to any of them is sent.
func (s *sockets) close() {
	s.mu.Lock()
	for _, one := range s.all {
		_ = one.Close()
	}
	s.mu.Unlock()
	s.pumps.Wait()
}

// listen listens beyond the link.
func (s *sockets) listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := s.beyond.Listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	return socketListener{l, s}, nil
}

type socketListener struct {
	net.Listener
	sockets *sockets
}

func (l socketListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.sockets.over(c), nil
}
