package peer

import "time"

const (
	// headerTimeout is how long a request's head may take: slow links need seconds for one,
	// attackers take for ever.
	headerTimeout = 30 * time.Second
	// idleTimeout is how long an HTTP connection may wait for its next request.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes is the longest request head, in bytes.
	maxHeaderBytes = 64 << 10

	// DefaultMaxConns is how many HTTP connections a server has at once: as many as streams.
	DefaultMaxConns = 1024
	// DefaultStall is how long [BodyStep] of a request's body may take, and 64 KiB of a reply: a
	// link of 14.4 kbit/s takes 5 s and 37 s, and an outage of a minute ends nothing.
	DefaultStall = 2 * time.Minute
	// BodyStep is how much of a body, in bytes, must come in the time of Stall.
	BodyStep = 8 << 10
	// replyStep is how much of a reply must be taken in that time.
	replyStep = 64 << 10
)

// Limits bound what HTTP clients can take of a [Server]. A zero field means its default.
type Limits struct {
	// MaxConns is how many HTTP connections there may be; 0 means [DefaultMaxConns].
	MaxConns int
	// MaxPerPeer is how many of them, and of the sessions and streams, one IP address may have, or
	// one IPv6 network of 64 bits; 0 means half of all.
	MaxPerPeer int
	// Stall is how long [BodyStep] of a request's body, or what is left of it, may be waited for,
	// and 64 KiB of a reply may wait for who reads it; 0 means [DefaultStall]. What takes longer
	// ends its connection. Time in which the service does not read is not counted.
	Stall time.Duration
	// Work bounds what services do at once.
	Work Work
}

func (l Limits) withDefaults() Limits {
	if l.MaxConns <= 0 {
		l.MaxConns = DefaultMaxConns
	}
	if l.Stall <= 0 {
		l.Stall = DefaultStall
	}
	return l
}

// connsPerPeer is MaxPerPeer of HTTP connections.
func (l Limits) connsPerPeer() int {
	if l.MaxPerPeer > 0 {
		return l.MaxPerPeer
	}
	return max(l.MaxConns/2, 1)
}
