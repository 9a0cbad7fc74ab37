// Package sock has what forwarders need beside reading and writing connections: waits that can be
// canceled, writes with a minimum rate, orderly ends, and ends that nobody takes for such.
package sock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/netconn"
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
	long  bool // buf is one of longBuffers
	err   error

	watched context.Context // interrupts reads by itself; nil: none does
	timer   clock.Timer     // interrupts reads that may not last; nil: none was such
	holds   atomic.Bool     // something was read that is not taken

	mu        sync.Mutex
	waits     context.Context // of the read in progress; nil: there is none
	cut       bool            // it was interrupted
	fired     bool            // the timer interrupted it
	late      int             // how often the timer will fire for reads that are over
	dismissed bool            // see Dismiss
	abandoned bool            // see Abandon
	last      bool            // the read in progress is the last one
}

// NewSource is the input of a connection; c bounds its waits.
func NewSource(conn net.Conn, c clock.Clock) *Source { return &Source{Conn: conn, clock: c} }

const (
	// MinRead is the minimum space of a read, and MaxSpace what a connection retains of its buffer,
	// in bytes.
	MinRead  = 16 << 10
	MaxSpace = 64 << 10
)

// lastLook is how long the last read of a source that is dismissed may take: a read whose time is
// over does not return what has come.
const lastLook = time.Millisecond

// ErrPaused says that nothing arrived within the wait.
var ErrPaused = errors.New("nothing came in time")

// ErrDismissed is the [io.EOF] of a source that was dismissed.
var ErrDismissed = fmt.Errorf("no more is read: %w", io.EOF)

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

// Watch makes waits with ctx cheaper, until stop is called: ctx is watched all the time, and not by
// each wait.
func (s *Source) Watch(ctx context.Context) (stop func()) {
	s.watched = ctx
	unwatch := s.watch(ctx)
	return func() {
		unwatch()
		s.watched = nil
	}
}

// watch has the end of ctx interrupt a read that waits with it.
func (s *Source) watch(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waits == ctx {
			s.interruptLocked()
		}
	})
}

// timeUp interrupts a read that lasted too long.
func (s *Source) timeUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late > 0 {
		s.late--
		return
	}
	s.fired = true
	s.interruptLocked()
}

func (s *Source) interruptLocked() {
	s.cut = true
	_ = s.Conn.SetReadDeadline(time.Unix(1, 0))
}

// fill reads once. Its error is why it did not; the error of the connection is retained.
func (s *Source) fill(ctx context.Context, d time.Duration) error {
	s.space()
	if ctx != s.watched {
		defer s.watch(ctx)()
	}
	s.begin(ctx, d)
	if ctx.Err() != nil { // perhaps before there was a read to interrupt
		s.end(d)
		return context.Cause(ctx)
	}
	n, err := netconn.Read(s.Conn, s.buf[len(s.buf):cap(s.buf)])
	s.buf = s.buf[:len(s.buf)+n]
	s.full = len(s.buf) == cap(s.buf)
	cut, dismissed := s.end(d)
	switch {
	case err == nil:
	case !cut || !errors.Is(err, os.ErrDeadlineExceeded):
		s.err = err
	case n > 0:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case dismissed:
		if s.last {
			s.err = ErrDismissed
		}
	default:
		return ErrPaused
	}
	return nil
}

// Dismiss ends the source with [ErrDismissed] as soon as nothing is there that is not taken. What
// has come by now is read still. It may be called concurrently with everything else.
func (s *Source) Dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dismissed = true
	if s.waits != nil && !s.holds.Load() {
		s.interruptLocked()
	}
}

// Abandon is Dismiss also for what is there, of which the rest is not waited for.
func (s *Source) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dismissed, s.abandoned = true, true
	if s.waits != nil {
		s.interruptLocked()
	}
}

// isOverLocked reports whether it ends now.
func (s *Source) isOverLocked() bool { return s.abandoned || s.dismissed && len(s.Peek()) == 0 }

// Holds reports whether something was read that is not taken. It may be called concurrently with
// everything else.
func (s *Source) Holds() bool { return s.holds.Load() }

// begin begins a read that ctx interrupts, and its time, if d is above 0.
func (s *Source) begin(ctx context.Context, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits, s.fired = ctx, false
	if s.last = s.isOverLocked(); s.last {
		s.cut = true
		_ = s.Conn.SetReadDeadline(time.Now().Add(lastLook))
	}
	switch {
	case d <= 0:
	case s.timer == nil:
		s.timer = s.clock.AfterFunc(d, s.timeUp)
	default:
		s.timer.Reset(d)
	}
}

// end ends a read, and reports whether it was interrupted, and whether the source ends since it was
// dismissed.
func (s *Source) end(d time.Duration) (cut, dismissed bool) {
	s.mu.Lock()
	s.holds.Store(len(s.Peek()) > 0)
	dismissed = s.isOverLocked()
	if d > 0 && !s.timer.Stop() && !s.fired {
		s.late++
	}
	cut = s.cut
	s.waits, s.cut = nil, false
	s.mu.Unlock()
	if cut {
		_ = s.Conn.SetReadDeadline(time.Time{})
	}
	return cut, dismissed
}

// space makes space for a read: more if the last read filled its space.
func (s *Source) space() {
	if len(s.buf) == 0 && cap(s.buf) >= MinRead && (!s.full || cap(s.buf) >= MaxSpace) {
		return
	}
	there := s.Peek()
	room := max(MinRead, min(cap(s.buf), 1<<20))
	if len(there) == 0 {
		room = max(MinRead, min(2*cap(s.buf), MaxSpace))
	}
	switch {
	case cap(s.buf)-len(s.buf) >= MinRead && len(s.buf) > 0:
		return
	case s.at >= MinRead && s.at >= len(there):
		s.buf = append(s.buf[:0], there...)
	default:
		s.buf = append(make([]byte, 0, len(there)+room), there...)
		s.long = false
	}
	s.at = 0
}

// Reserve makes space for n bytes that are not taken: what is known to grow long is not moved each
// time it grows. The space is another source's once all is taken.
func (s *Source) Reserve(n int) {
	if cap(s.buf)-s.at >= n {
		return
	}
	before, long := s.buf, s.long
	s.buf, s.at, s.long = append(longBuffers.get(n), s.Peek()...), 0, true
	if long {
		longBuffers.put(before)
	}
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
	s.holds.Store(false)
	full := s.full
	s.at, s.buf, s.full = 0, s.buf[:0], full
	if cap(s.buf) > MaxSpace { // one long message must not occupy it for the life of the connection
		if s.long {
			longBuffers.put(s.buf)
		}
		s.buf, s.long = nil, false
	}
}

// Drain reads and drops input, until the connection ends, or ctx.
func (s *Source) Drain(ctx context.Context) {
	for err := error(nil); err == nil; {
		s.Take(len(s.Peek()))
		_, err = s.Wait(ctx, 0, 0)
	}
}
