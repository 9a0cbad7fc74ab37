package udp

import (
	"time"

	"github.com/hhfr/hhfr/internal/netconn"
)

// Stats count what the sequences of a connection did so far.
type Stats struct {
	// Sent and Received are datagrams; Refused those that broke a rule.
	Sent, Received, Refused int64
	// AcksSent and AcksReceived are acknowledgements, alone or in datagrams with units: a unit is
	// what fits a datagram.
	AcksSent, AcksReceived int64
	// Resent are units sent again, Duplicates units that arrived again.
	Resent, Duplicates int64
	// Timeouts is how often the retransmission timer fired, Undone how often that was wrong, Probes
	// how often the last datagram was sent again before it.
	Timeouts, Undone, Probes int64
	// RTT is the smoothed round trip, RTO the retransmission timer; 0 and its initial value before
	// anything was acknowledged.
	RTT, RTO time.Duration
	// Window and Flight are the congestion window and what is under way, in bytes with headers.
	Window, Flight int
}

// Stats is what the sequences of the connection did so far, also when it is closed.
func (c *conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return c.final
	}
	return Stats(c.engine.Stats())
}

// Path is what the engine knows of the path, for [netconn.PathOf].
func (c *conn) Path() netconn.PathInfo {
	s := c.Stats()
	return netconn.PathInfo{RoundTrip: s.RTT, Resent: s.Resent}
}
