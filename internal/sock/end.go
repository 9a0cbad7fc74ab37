package sock

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/hhfr/hhfr/internal/netconn"
)

// linger is how long an orderly closed connection is still read, so that its last bytes are not
// lost to a reset.
const linger = time.Second

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
		in.rest().Drain(ctx)
	}
	_ = in.Conn.Close()
}

// rest is the source of what comes still where this one was abandoned.
func (s *Source) rest() *Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abandoned {
		return NewSource(s.Conn, s.clock)
	}
	return s
}

// Reset ends a connection so that the peer does not take it for an orderly end.
func Reset(conn net.Conn) { _ = netconn.Abort(conn) }
