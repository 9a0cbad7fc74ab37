package negotiate

import "time"

const (
	// MaxOffer is the longest offer or answer, in octets: the fingerprints of a full offer take 45 KiB.
	MaxOffer = 64 << 10
	// MaxShapes is how many fingerprints an offer names, and an answer: as many as a stream's table of shapes holds by default.
	MaxShapes = 1024
	// maxChoices bounds the schemes, representations and transports that an offer lists.
	maxChoices = 16
	// maxContext bounds the context of a session, in octets: what an offer holds of it, escaped.
	maxContext = 2 * MaxOffer
	// maxHeader bounds one unchanging header block, in octets: WS-Addressing and device headers are below 1 KiB.
	maxHeader = 4 << 10
	// maxValue bounds the text of one element but for the fingerprints, in octets: what HTTP servers accept as a path.
	maxValue = 2048
	// maxPeek is how far the Body's first child of a request may be from its start for the request to be recognised as an offer, in octets.
	maxPeek = 4 << 10

	// DefaultRememberFor is how long an end that answered no offer is spoken to in plain SOAP: long enough not to ask for every call,
	// short enough that an end that was just brought up to date is found the same day.
	DefaultRememberFor = 10 * time.Minute
	// DefaultTimeout bounds negotiation together with opening the stream: some ten round trips of the slowest links in use.
	DefaultTimeout = 30 * time.Second
	// DefaultLifetime is how long a session's context is kept, when neither end says otherwise.
	DefaultLifetime = time.Hour
	// MaxLifetime is the longest lifetime a responder grants unless told otherwise.
	MaxLifetime = 24 * time.Hour
	// DefaultJoinWithin is how long after the answer a stream must be opened: sessions that nobody joins cost room.
	DefaultJoinWithin = time.Minute
	// DefaultMaxSessions is how many sessions a responder keeps, negotiated or joined; beyond it offers are refused with a fault. Each that waits
	// takes up to 64 KiB of the store.
	DefaultMaxSessions = 1024
	// maxInterrupted is how many interrupted runs a store remembers of one URL, beside the last:
	// each is one that was not gone on with, but followed by another.
	maxInterrupted = 16
	// keptContexts is how many contexts of ended sessions stay in the store, for each session there may be; a context without fingerprints takes
	// about 1 KiB. One with unchanging headers counts as so many as take its room.
	keptContexts = 4
)
