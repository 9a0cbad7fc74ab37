package link

import (
	"bytes"
	"container/heap"
	"context"
	"net"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/timeline"
	"github.com/hhfr/hhfr/pkg/clock"
)

// Packets joins two sockets by one path in each direction. They wait on c; nil means the machine's
// clock. Whatever address they write to, it goes to the other socket. What has not been read when a
// socket is closed is lost. Errors: BadProfile.
func Packets(c clock.Clock, p Profile) (near, far net.PacketConn, err error) {
	if c == nil {
		c = clock.Real()
	}
	var ends [2]*socket
	for way := range ends {
		path, err := NewPath(p, way)
		if err != nil {
			return nil, nil, err
		}
		ends[way] = &socket{clock: c, path: path, addr: addr([]string{"near", "far"}[way]),
			changed: make(chan struct{}, 1)}
	}
	ends[0].other, ends[1].other = ends[1], ends[0]
	return ends[0], ends[1], nil
}

// maxArriving is the maximum number of datagrams that wait to be read at a socket; more are
// dropped, as in a kernel.
const maxArriving = 4096

// socket is one end.
type socket struct {
	clock clock.Clock
	addr  addr
	other *socket

	sending sync.Mutex
	path    *Path

	mu       sync.Mutex
	arriving timeline.Queue[[]byte] // datagrams in transit
	serial   int
	closed   bool
	changed  chan struct{} // holds one when something new arrives
	reading  connDeadline
}

func (s *socket) fault(op string, err error) error {
	return &net.OpError{Op: op, Net: "link", Source: s.addr, Addr: s.other.addr, Err: err}
}

// WriteTo implements [net.PacketConn]. It never waits.
func (s *socket) WriteTo(p []byte, _ net.Addr) (int, error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return 0, s.fault("write", net.ErrClosed)
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	for _, at := range s.path.Send(s.clock.Now(), len(p)) {
		s.other.arrive(at, p)
	}
	return len(p), nil
}

func (s *socket) arrive(at time.Time, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.arriving) >= maxArriving {
		return
	}
	s.serial++
	heap.Push(&s.arriving, timeline.Event[[]byte]{At: at, Serial: s.serial, What: bytes.Clone(p)})
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// ReadFrom implements [net.PacketConn]. One goroutine at a time may call it.
func (s *socket) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		until := s.reading.context()
		wait := time.Hour
		s.mu.Lock()
		if len(s.arriving) > 0 {
			if wait = s.arriving[0].At.Sub(s.clock.Now()); wait <= 0 {
				n := copy(p, heap.Pop(&s.arriving).(timeline.Event[[]byte]).What)
				s.mu.Unlock()
				return n, s.other.addr, nil
			}
		}
		s.mu.Unlock()
		timer := s.clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-s.changed:
		case <-until.Done():
			if err := s.expired(); err != nil {
				timer.Stop()
				return 0, nil, err
			}
		}
		timer.Stop()
	}
}

// expired returns why nothing more is read: the socket was closed, or its deadline is over.
func (s *socket) expired() error {
	if cause := context.Cause(s.reading.context()); cause != nil {
		return s.fault("read", cause)
	}
	return nil // the deadline was moved
}

// Close implements [net.PacketConn].
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.fault("close", net.ErrClosed)
	}
	s.closed = true
	s.arriving = nil
	s.reading.close()
	return nil
}

// LocalAddr implements [net.PacketConn].
func (s *socket) LocalAddr() net.Addr { return s.addr }

// SetDeadline implements [net.PacketConn]; writing never waits.
func (s *socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetReadDeadline implements [net.PacketConn]. Deadlines are times of the machine's clock.
func (s *socket) SetReadDeadline(t time.Time) error {
	if err := s.reading.set(t); err != nil {
		return s.fault("set", err)
	}
	return nil
}

// SetWriteDeadline implements [net.PacketConn].
func (s *socket) SetWriteDeadline(time.Time) error { return nil }
