package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/clock"
)

// source is what comes in on a connection: a buffer that the goroutine fills that waits, and whose waits
// can be given up. One goroutine at a time uses it.
type source struct {
	conn  net.Conn
	clock clock.Clock
	buf   []byte
	at    int  // bytes of buf that are taken
	full  bool // the last read had as much as there was space for
	err   error

	mu      sync.Mutex
	reads   uint64 // the number of the read under way, or of the last
	reading bool
	cut     bool // the read under way was interrupted
}

const (
	// minRead is how much space a read has at least, and maxSpace what a connection keeps of its buffer,
	// in bytes.
	minRead  = 16 << 10
	maxSpace = 64 << 10
)

// errPaused says that nothing came for as long as was waited.
var errPaused = errors.New("nothing came in time")

// wait gives what is there, once that is more than have bytes; the slice is good until the next wait or
// take. With the end of the connection, also with less, err is not nil: [io.EOF] for the end in order.
// d > 0: errPaused after so long; d < 0: at once.
func (s *source) wait(ctx context.Context, have int, d time.Duration) ([]byte, error) {
	for len(s.peek()) <= have {
		switch {
		case s.err != nil:
			return s.peek(), s.err
		case d < 0:
			return s.peek(), errPaused
		case ctx.Err() != nil:
			return s.peek(), context.Cause(ctx)
		}
		if err := s.fill(ctx, d); err != nil {
			return s.peek(), err
		}
	}
	return s.peek(), nil
}

// fill reads once. Its error is why it did not; that of the connection is kept.
func (s *source) fill(ctx context.Context, d time.Duration) error {
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
	n, err := s.conn.Read(s.buf[len(s.buf):cap(s.buf)])
	s.buf = s.buf[:len(s.buf)+n]
	s.full = len(s.buf) == cap(s.buf)
	s.mu.Lock()
	cut := s.cut
	s.reading, s.cut = false, false
	s.mu.Unlock()
	if cut {
		_ = s.conn.SetReadDeadline(time.Time{})
	}
	switch {
	case err == nil:
	case !cut || !errors.Is(err, os.ErrDeadlineExceeded):
		s.err = err
	case n > 0:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return errPaused
	}
	return nil
}

// interrupt ends a read, if that is the one under way.
func (s *source) interrupt(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading && s.reads == number {
		s.cut = true
		_ = s.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// space makes some to read into: more where more came than there was space for.
func (s *source) space() {
	if len(s.buf) == 0 && cap(s.buf) >= minRead && (!s.full || cap(s.buf) >= maxSpace) {
		return
	}
	there := s.peek()
	switch {
	case cap(s.buf)-len(s.buf) >= minRead && len(s.buf) > 0:
		return
	case s.at >= minRead && s.at >= len(there):
		s.buf = append(s.buf[:0], there...)
	default:
		s.buf = append(make([]byte, 0, len(there)+max(minRead, min(cap(s.buf), 1<<20))), there...)
	}
	s.at = 0
}

// peek gives what is there, without waiting.
func (s *source) peek() []byte { return s.buf[s.at:len(s.buf):len(s.buf)] }

// drained reports whether all that was read is taken, and nothing more seems to be there.
func (s *source) drained() bool { return s.at == len(s.buf) && !s.full }

// take takes n bytes from the front.
func (s *source) take(n int) {
	if s.at += n; s.at < len(s.buf) {
		return
	}
	full := s.full
	s.at, s.buf, s.full = 0, s.buf[:0], full
	if cap(s.buf) > maxSpace {
		s.buf = nil // one long message must not keep its space for the life of the connection
	}
}

// close closes the connection.
func (s *source) close() { _ = s.conn.Close() }

// drain reads and drops what comes, until the connection ends, or ctx.
func (s *source) drain(ctx context.Context) {
	for err := error(nil); err == nil; {
		s.take(len(s.peek()))
		_, err = s.wait(ctx, 0, 0)
	}
}
