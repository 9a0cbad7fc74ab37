package responder

import (
	"context"
	"net"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Opened is what an end wants to know of a stream that it accepts by [Responder.ServeConn].
type Opened struct {
	// Handler serves the exchanges of this stream, heads as they came. Required.
	Handler streamer.Handler
	// Stream, if given, gets the stream once it is open, maybe after the first exchange. It must
	// not wait.
	Stream func(*streamer.Stream)
}

// ServeConn runs one stream over a connection that the caller accepted, to its end. It is
// [Responder.ServeStreams] for ends that tell streams apart: open is called when a session is
// joined, and what it returns serves this stream alone; Serve and OnStream of the configuration are
// not used. It owns conn. It returns false at once when there are too many connections, or the
// responder is closed.
func (r *Responder) ServeConn(ctx context.Context, conn net.Conn, open func(negotiate.Facts) Opened) bool {
	end, ok := r.enterConn(conn)
	if !ok {
		return false
	}
	defer end()
	r.serveConn(ctx, conn, open)
	return true
}
