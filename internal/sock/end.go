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
// longer than Stall for 64 KiB, the connection is reset.
type StallWriter struct {
	Conn  net.Conn
	Stall time.Duration
	Clock clock.Clock
	Log   *slog.Logger
}

// Write writes in steps, each of which has its deadline.
func (w StallWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		piece := b[:min(len(b), step)]
		timer := w.Clock.AfterFunc(w.Stall, func() {
			w.Log.Warn("an end does not take what is written", "peer", w.Conn.RemoteAddr(), "for", w.Stall)
			Reset(w.Conn)
		})
		k, err := w.Conn.Write(piece)
		timer.Stop()
		if n += k; err != nil {
			return n, err
		}
		b = b[k:]
	}
	return n, nil
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
