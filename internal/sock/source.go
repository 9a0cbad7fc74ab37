// Package sock has what forwarders need beside reading and writing connections: waits that can be
// canceled, writes with a minimum rate, orderly ends, and ends that nobody takes for such.
package sock

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
)

// Source is the input of a connection: a buffer that is filled by the waiting goroutine, whose
// waits can be canceled. One goroutine at a time uses it.
type Source struct {
	Conn  net.Conn
	clock clock.Clock
	buf   []byte
	at    int  // number of bytes of buf that are taken
	full  bool // the last read filled its space
	err   error

	mu      sync.Mutex
	reads   uint64 // number of the read in progress, or of the last
	reading bool
	cut     bool // the read in progress was interrupted
}

// NewSource is the input of a connection; c bounds its waits.
func NewSource(conn net.Conn, c clock.Clock) *Source { return &Source{Conn: conn, clock: c} }

const (
	// MinRead is the minimum space of a read, and MaxSpace what a connection retains of its buffer,
	// in bytes.
	MinRead  = 16 << 10
	MaxSpace = 64 << 10
)

// ErrPaused says that nothing arrived within the wait.
var ErrPaused = errors.New("nothing came in time")

// Wait returns what is there, once that is more than have bytes; the slice is valid until the next
// wait or Take. At the end of the connection, also with fewer bytes, err is not nil: [io.EOF] for
// an orderly end. d > 0: ErrPaused after that time; d < 0: at once.
func (s *Source) Wait(ctx context.Context, have int, d time.Duration) ([]byte, error) {
	for len(s.Peek()) <= have {
		switch {
		case s.err != nil:
			return s.Peek(), s.err
		case d < 0:
			return s.Peek(), ErrPaused
		case ctx.Err() != nil:
			return s.Peek(), context.Cause(ctx)
		}
		if err := s.fill(ctx, d); err != nil {
			return s.Peek(), err
		}
	}
	return s.Peek(), nil
}

// fill reads once. Its error is why it did not; the error of the connection is retained.
func (s *Source) fill(ctx context.Context, d time.Duration) error {
	s.space()
	s.mu.Lock()
	s.reads++
	number := s.reads
	s.reading = true
	s.mu.Unlock()
	defer context.AfterFunc(ctx, func() { s.interrupt(number) })()
	if d > 0 {
		defer s.clock.AfterFunc(d, func() { s.interrupt(number) }).Stop()
	}
	n, err := s.Conn.Read(s.buf[len(s.buf):cap(s.buf)])
	s.buf = s.buf[:len(s.buf)+n]
	s.full = len(s.buf) == cap(s.buf)
	s.mu.Lock()
	cut := s.cut
	s.reading, s.cut = false, false
	s.mu.Unlock()
	if cut {
		_ = s.Conn.SetReadDeadline(time.Time{})
	}
	switch {
	case err == nil:
	case !cut || !errors.Is(err, os.ErrDeadlineExceeded):
		s.err = err
	case n > 0:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return ErrPaused
	}
	return nil
}

// interrupt ends a read, if that is the one in progress.
func (s *Source) interrupt(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading && s.reads == number {
		s.cut = true
		_ = s.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// space makes space for a read: more if the last read filled its space.
func (s *Source) space() {
	if len(s.buf) == 0 && cap(s.buf) >= MinRead && (!s.full || cap(s.buf) >= MaxSpace) {
		return
	}
	there := s.Peek()
	switch {
	case cap(s.buf)-len(s.buf) >= MinRead && len(s.buf) > 0:
		return
	case s.at >= MinRead && s.at >= len(there):
		s.buf = append(s.buf[:0], there...)
	default:
		s.buf = append(make([]byte, 0, len(there)+max(MinRead, min(cap(s.buf), 1<<20))), there...)
	}
	s.at = 0
}

// Peek returns what is there, without waiting.
func (s *Source) Peek() []byte { return s.buf[s.at:len(s.buf):len(s.buf)] }

// Drained reports whether everything that was read is taken, and nothing more seems to be there.
func (s *Source) Drained() bool { return s.at == len(s.buf) && !s.full }

// Take takes n bytes from the front.
func (s *Source) Take(n int) {
	if s.at += n; s.at < len(s.buf) {
		return
	}
	full := s.full
	s.at, s.buf, s.full = 0, s.buf[:0], full
	if cap(s.buf) > MaxSpace {
		s.buf = nil // one long message must not occupy its space for the life of the connection
	}
}

// Drain reads and drops input, until the connection ends, or ctx.
func (s *Source) Drain(ctx context.Context) {
	for err := error(nil); err == nil; {
		s.Take(len(s.Peek()))
		_, err = s.Wait(ctx, 0, 0)
	}
}
