package arq

import (
	"fmt"
	"time"
)

// Config is what an engine works by. Both ends must agree on Window and Hold. A zero field means
// its default.
type Config struct {
	// Window is how many units may be sent and not done, a power of two, 64 to 65536; 0 means 1024:
	// a round trip of a fast link, at a few dozen bytes of state each.
	Window int
	// Hold is how many bytes of messages that are not done a sender keeps, and a receiver keeps of
	// those it cannot deliver yet; 0 means 1 MiB. It bounds one message as well.
	Hold int
	// Datagram is the longest datagram, in bytes of UDP payload, 256 to 65000; 0 means 1200, which
	// nearly every path carries (RFC 8085 section 3.2, RFC 9000 section 14).
	Datagram int
	// RTT is a round trip measured before, by a hello; 0 means that none was.
	RTT time.Duration
	// Inactivity is after what silence of the peer a sequence ends; 0 means 10 min. An end with
	// something to say asks for signs of life three times as often.
	Inactivity time.Duration
	// Unanswered is after what silence a sequence ends while something is awaited: a unit is not
	// done, or [Await] said so. It counts from when that began, at the earliest. After a quarter of
	// it a sign of life is asked for, and from then on each eighth of it. 0 means as Inactivity,
	// which bounds it, and asks for nothing further.
	Unanswered time.Duration
}

const (
	// packetOverhead is what IP and UDP add to a datagram, in bytes; it counts to the congestion
	// window, so that many small datagrams are not free.
	packetOverhead = 28
	// unitReserve is what is kept free in a datagram beside a fragment, in bytes: the longest
	// header, and the head of the unit.
	unitReserve = 64
	// reorderPackets is how many datagrams later one must be echoed to call an earlier one lost
	// (RFC 5681 section 3.2, RFC 8985).
	reorderPackets = 3
	// initialRTO is that of RFC 6298 rule 2.1; minRTO and maxRTO bound the retransmission timer by
	// rules 2.4 and 2.5.
	initialRTO = time.Second
	minRTO     = time.Second
	maxRTO     = time.Minute
	// ackDelay is how long an acknowledgement waits for company. Every second datagram, and all
	// that is out of order, is acknowledged at once.
	ackDelay = 25 * time.Millisecond
	// granularity is G of RFC 6298.
	granularity = time.Millisecond
	// maxEndings is how often the end of a sequence is sent to a peer that does not answer.
	maxEndings = 8
	// sentMemory is how many of the last datagrams a moment of sending is kept of, to measure round
	// trips: more than fit a window of full ones.
	sentMemory = 512
)

// withDefaults checks a configuration and fills in what is zero.
func (c Config) withDefaults() (Config, error) {
	if c.Window == 0 {
		c.Window = 1024
	}
	if c.Hold == 0 {
		c.Hold = 1 << 20
	}
	if c.Datagram == 0 {
		c.Datagram = 1200
	}
	if c.Inactivity == 0 {
		c.Inactivity = 10 * time.Minute
	}
	switch {
	case c.Window < 64 || c.Window > 1<<16 || c.Window&(c.Window-1) != 0:
		return c, fmt.Errorf("window of %d, a power of two from 64 to 65536 is possible", c.Window)
	case c.Hold < 1 || c.Hold > 1<<30:
		return c, fmt.Errorf("%d bytes held, 1 to 2^30 are possible", c.Hold)
	case c.Datagram < 256 || c.Datagram > 65000:
		return c, fmt.Errorf("datagrams of %d bytes, 256 to 65000 are possible", c.Datagram)
	case c.RTT < 0 || c.Inactivity < 0 || c.Unanswered < 0:
		return c, fmt.Errorf("times below 0: %v, %v, %v", c.RTT, c.Inactivity, c.Unanswered)
	}
	return c, nil
}
