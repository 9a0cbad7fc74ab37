package sock

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/pkg/clock"
)

// step is the number of bytes that a peer must accept within Stall.
const step = 64 << 10

// StallWriter writes to a connection whose peer may be slow, but not stand still: if it takes
// longer than the stall time for 64 KiB, the connection is reset.
type StallWriter struct {
	conn    net.Conn
	stall   time.Duration
	clock   clock.Clock
	timer   clock.Timer  // runs while a step is written
	written atomic.Int64 // bytes
	stalled atomic.Bool
}

// NewStallWriter writes to conn, whose peer may take as long as stall on c for a step.
func NewStallWriter(conn net.Conn, stall time.Duration, c clock.Clock, logger *slog.Logger) *StallWriter {
	w := &StallWriter{conn: conn, stall: stall, clock: c}
	w.timer = c.AfterFunc(stall, func() {
		w.stalled.Store(true)
		logger.Warn("an end does not take what is written", "peer", conn.RemoteAddr(), "for", stall)
		Reset(conn)
	})
	w.timer.Stop()
	return w
}

// HasStalled reports whether the connection was reset because its peer stood still.
func (w *StallWriter) HasStalled() bool { return w.stalled.Load() }

// Write writes in steps, each of which has its time. What the connection takes without waiting
// needs none.
func (w *StallWriter) Write(b []byte) (n int, err error) {
	defer func() { w.written.Add(int64(n)) }()
	for n < len(b) {
		this := b[n:min(len(b), n+step)]
		k := netconn.TryWrite(w.conn, this)
		if n += k; k == len(this) {
			continue
		}
		w.timer.Reset(w.stall)
		k, err = w.conn.Write(this[k:])
		w.timer.Stop()
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// WhenQuiet calls f, once, when nothing was written for as long as d, until stop is called.
func (w *StallWriter) WhenQuiet(d time.Duration, f func()) (stop func()) {
	q := &quiet{w: w, d: d, f: f, written: w.written.Load()}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timer = w.clock.AfterFunc(d, q.check)
	return q.stop
}

// quiet calls f when nothing was written for long.
type quiet struct {
	w *StallWriter
	d time.Duration
	f func()

	mu      sync.Mutex
	timer   clock.Timer
	written int64
	stopped bool
}

func (q *quiet) check() {
	q.mu.Lock()
	now := q.w.written.Load()
	is := now == q.written && !q.stopped
	if q.written = now; !is && !q.stopped {
		q.timer.Reset(q.d)
	}
	q.mu.Unlock()
	if is {
		q.f()
	}
}

func (q *quiet) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.timer.Stop()
}

// EagerWriter writes what the connection of To takes without waiting, and keeps the rest. Its
// errors are left to who writes that.
type EagerWriter struct {
	To   *StallWriter
	Rest []byte
}

// Write implements [io.Writer]; it takes everything.
func (w *EagerWriter) Write(b []byte) (int, error) {
	n := 0
	if len(w.Rest) == 0 {
		n = netconn.TryWrite(w.To.conn, b)
		w.To.written.Add(int64(n))
	}
	w.Rest = append(w.Rest, b[n:]...)
	return len(b), nil
}
