package responder

import (
	"context"
	"net"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Opened is what the caller of [Responder.ServeConn] returns for an accepted stream.
type Opened struct {
	// Handler serves the exchanges of this stream, with heads as they came. Required.
	Handler streamer.ExchangeHandler
	// Quick, if given, is asked before; not about messages of a sequence.
	Quick streamer.QuickHandler
	// Stream, if given, is called with the stream once it is open, maybe after the first exchange.
	// It must not block.
	Stream func(*streamer.Stream)

	served *servedSession // what Handler serves, for its context; nil: nothing
}

// ServeConn runs one stream over a connection that the caller accepted, to its end. It is
// [Responder.ServeStreams] for callers that treat each stream apart: open is called when a session
// is joined, and what it returns serves this stream alone. Serve and OnStream of the configuration
// are not used. ServeConn owns conn. It returns false at once when there are too many connections,
// or the responder is closed.
func (r *Responder) ServeConn(ctx context.Context, conn net.Conn, open func(negotiate.Facts) Opened) bool {
	v := r.enterConn(conn)
	if v == nil {
		return false
	}
	over := make(chan struct{})
	v.serveConn(ctx, conn, open, func() { close(over) })
	<-over
	return true
}
