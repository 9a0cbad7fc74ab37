package sequence

import (
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore/pieces"
)

const (
	// window is how many messages of a direction may be accepted and not done, and hold how many
	// bytes they may have together, heads and bodies: a state in a store has both directions at
	// most. Both ends keep to the same numbers (docs/wire-format.md, section 5.1).
	window = 1024
	hold   = 4 << 20
	// MaxMessage is the longest message that is not long, head and body, in bytes: one that lies in
	// the state of the sequence.
	MaxMessage = hold - 64
	// MaxLong is the longest body, in bytes: the default of what a stream takes.
	MaxLong = 1 << 30
	// pieceSize is how many bytes of a long body lie in one entry of a store, at most, and
	// longWeight what a long message weighs: one piece is in memory while it is read or stored, and
	// so few are under way that several share a stream.
	// maxLong is how many of them are sent at once over a stream.
	maxLong    = 4
	pieceSize  = pieces.Size
	longWeight = 2 * pieceSize
	// maxAcks is how many acknowledgements wait to be looked at: each says all that those before it
	// did.
	maxAcks = 64
	// ackDelay is how long what is done waits to be acknowledged: the peer wants to know it to
	// make room, of which there is plenty.
	ackDelay = 100 * time.Millisecond
	// maxHandlers is how many messages are handled at once that no transaction covers, and that
	// need no order.
	maxHandlers = 64
	// askAfter is how long nothing may be heard of the peer while something is waited for,
	// before it is asked: some transports only notice that it is gone when they have something to
	// send. Twice as long each time, up to maxAskAfter.
	askAfter    = 2 * time.Second
	maxAskAfter = time.Minute
	// closeGrace is how long Close waits for handlers before it tells them to end.
	closeGrace = 5 * time.Second
	// retryAfter is how long a handler that failed to commit is left alone.
	retryAfter = time.Second
)
