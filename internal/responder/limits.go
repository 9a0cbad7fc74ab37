package responder

import "time"

const (
	// MaxLifetime is the longest lifetime a responder grants unless told otherwise.
	MaxLifetime = 24 * time.Hour
	// DefaultJoinWithin is how long after the answer a stream must be opened: sessions that nobody
	// joins cost space.
	DefaultJoinWithin = time.Minute
	// DefaultMaxSessions is how many sessions a responder keeps, negotiated or joined; beyond it
	// offers are refused with a fault. Each waiting session takes up to 64 KiB of the store.
	DefaultMaxSessions = 1024
	// keptContexts is how many contexts of ended sessions stay in the store, for each session that
	// the limit allows. A context without fingerprints takes about 1 KiB. One with unchanging
	// headers counts as many times as its space requires.
	keptContexts = 4
	// keptSequences is how many sequences stay in the store for each session that the limit allows,
	// one of them such as nobody needs. Those in which a service keeps something do not count.
	keptSequences = 16
	// maxPeek is how far the Body's first child of a request may be from its start for the request
	// to be recognized as an offer, in bytes.
	maxPeek = 4 << 10
)
