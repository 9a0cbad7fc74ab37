package responder

import "github.com/hhfr/hhfr/pkg/streamer"

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
