package negotiate

import "time"

const (
	// MaxOffer is the longest offer or answer, in bytes: the fingerprints of a full offer take 45
	// KiB.
	MaxOffer = 64 << 10
	// MaxShapes is how many fingerprints an offer names, and an answer: as many as a stream's table
	// of shapes holds by default.
	MaxShapes = 1024
	// maxChoices bounds the schemes, representations and transports that an offer lists.
	maxChoices = 16
	// maxContext bounds the context of a session, in bytes: the parts of an offer in it, escaped.
	maxContext = 2 * MaxOffer
	// maxHeader bounds one unchanging header block, in bytes: WS-Addressing and device headers are
	// below 1 KiB.
	maxHeader = 4 << 10
	// maxValue bounds the text of one element except for the fingerprints, in bytes: what HTTP
	// servers accept as a path.
	maxValue = 2048

	// maxInterrupted is how many interrupted runs a store remembers of one URL, besides the last:
	// each was not continued, but followed by another.
	maxInterrupted = 16
	// DefaultTimeout bounds negotiation together with opening the stream: some ten round trips of
	// the slowest links in use.
	DefaultTimeout = 30 * time.Second
	// DefaultLifetime is how long a session's context is kept, when neither end says otherwise.
	DefaultLifetime = time.Hour
)
