package udp_test

import (
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// tape is a socket that gives datagrams from a tape, and adds up what is sent.
type tape struct {
	in        chan []byte
	mu        sync.Mutex
	closed    chan struct{}
	got, sent int
	answer    []byte // the last 17 bytes sent as such
}

func (s *tape) ReadFrom(p []byte) (int, net.Addr, error) {
	select {
	case b := <-s.in:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got += len(b)
		return copy(p, b), s.LocalAddr(), nil
	case <-s.closed:
		return 0, nil, net.ErrClosed
	}
}

func (s *tape) WriteTo(p []byte, _ net.Addr) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent += len(p)
	if len(p) == 17 && p[0] == 2 {
		s.answer = append(s.answer[:0], p...)
	}
	return len(p), nil
}

func (s *tape) Close() error                     { close(s.closed); return nil }
func (s *tape) LocalAddr() net.Addr              { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9} }
func (s *tape) SetDeadline(time.Time) error      { return nil }
func (s *tape) SetReadDeadline(time.Time) error  { return nil }
func (s *tape) SetWriteDeadline(time.Time) error { return nil }

// FuzzListener gets anything, from a stranger, then from one with a session: nobody is sent more
// than three times what came, and nothing breaks.
func FuzzListener(f *testing.F) {
	f.Add([]byte{4, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 1, 0, 1, 2, 'x'}, []byte{1, 1, 1, 0, 1, 2, 'x'})
	f.Add([]byte{3, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 5, 1, 1, 0}, []byte{0x0d, 1, 1, 0})
	f.Add(append([]byte{1}, make([]byte, 31)...), []byte{0x10, 0x08, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{5, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}, []byte{0x1b, 1, 1, 0, 2, 1, 0, 1, 2, 0, 1, 1, 1})
	f.Add([]byte{6, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}, []byte{1, 1, 1, 1, 1, 5, 1, 'x', 'y', 1, 2, 'z'})
	f.Add([]byte{7, 1, 2, 3, 4, 5, 6, 7, 8, 3, 1, 1, 0, 1, 2, 'x'}, []byte{3, 1, 1, 0, 1, 2, 'x'}) // early
	f.Add([]byte{7, 0, 0, 0, 0, 0, 0, 0, 5, 3, 1, 1, 0, 1, 5, 1, 'x', 'y'}, []byte{3, 1, 1, 1, 1, 5, 2, 'x', 'y'})
	f.Add([]byte{7, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b, 1, 1, 0, 2, 1, 0, 1, 2, 0, 1, 1, 1}, []byte{7, 1, 1, 0})
	f.Fuzz(func(t *testing.T, stranger, packet []byte) {
		s := &tape{in: make(chan []byte), closed: make(chan struct{})}
		l, err := udp.Listen(s, udp.Config{Linger: time.Nanosecond})
		require.NoError(t, err)
		s.in <- stranger
		s.in <- nil // the one before was looked at
		s.mu.Lock()
		assert.LessOrEqual(t, s.sent, 3*s.got)
		s.mu.Unlock()
		if len(packet) < 60_000 {
			s.in <- append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 5}, make([]byte, 23)...)
			s.in <- nil
			s.mu.Lock()
			require.Len(t, s.answer, 17)
			open := binary.BigEndian.AppendUint64(append([]byte{3}, s.answer[9:17]...), 5)
			s.mu.Unlock()
			s.in <- append(open, packet...)
			s.in <- nil
			c, err := l.Accept()
			require.NoError(t, err)
			require.NoError(t, c.Close())
		}
		require.NoError(t, l.Close())
	})
}
