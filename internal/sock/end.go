package sock

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/pkg/clock"
)

// linger is how long an orderly closed connection is still read, so that its last bytes are not
// lost to a reset.
const linger = time.Second

// step is the number of bytes that a peer must accept within Stall.
const step = 64 << 10

// StallWriter writes to a connection whose peer may be slow, but not stand still: if it takes
// longer than the stall time for 64 KiB, the connection is reset.
type StallWriter struct {
	conn  net.Conn
	stall time.Duration
	timer clock.Timer // runs while a step is written
}

// NewStallWriter writes to conn, whose peer may take as long as stall on c for a step.
func NewStallWriter(conn net.Conn, stall time.Duration, c clock.Clock, logger *slog.Logger) *StallWriter {
	timer := c.AfterFunc(stall, func() {
		logger.Warn("an end does not take what is written", "peer", conn.RemoteAddr(), "for", stall)
		Reset(conn)
	})
	timer.Stop()
	return &StallWriter{conn: conn, stall: stall, timer: timer}
}

// Write writes in steps, each of which has its time. What the connection takes without waiting
// needs none.
func (w *StallWriter) Write(b []byte) (n int, err error) {
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
	}
	w.Rest = append(w.Rest, b[n:]...)
	return len(b), nil
}

// CloseWrite ends the outgoing direction of a connection, or all of it if that is not possible.
func CloseWrite(conn net.Conn) error {
	if err := netconn.CloseWrite(conn); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return conn.Close()
}

// Finish ends a connection in order: what was written arrives. What the peer still sends is read
// for a moment, so that the peer sees no reset. The waiting ends with ctx.
func Finish(ctx context.Context, in *Source) {
	if CloseWrite(in.Conn) == nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer in.clock.AfterFunc(linger, cancel).Stop()
		in.Drain(ctx)
	}
	_ = in.Conn.Close()
}

// Reset ends a connection so that the peer does not take it for an orderly end.
func Reset(conn net.Conn) { _ = netconn.Abort(conn) }
