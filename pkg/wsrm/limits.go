package wsrm

import (
	"fmt"
	"math"
	"time"
)

// Assurance is what holds for each message (WS-RM Policy 1.1, DeliveryAssurance).
type Assurance uint8

const (
	// AtMostOnce: never twice.
	AtMostOnce Assurance = iota + 1
	// AtLeastOnce: never lost in silence.
	AtLeastOnce
	// ExactlyOnce: both.
	ExactlyOnce
)

var assuranceNames = map[Assurance]string{AtMostOnce: "at-most-once", AtLeastOnce: "at-least-once", ExactlyOnce: "exactly-once"}

func (a Assurance) String() string { return assuranceNames[a] }

// Config is what an engine works by. Both ends must agree on the fields down to Hold. A zero field means its default.
type Config struct {
	// Assurance is that of both directions; required.
	Assurance Assurance
	// Ordered delivers in the order of the numbers.
	Ordered bool
	// Limit is the greatest number of a sequence; 0 means 2^63-1, that of WS-RM.
	Limit uint64
	// Window is how many units may be sent and not done, a power of two, 64 to 65536; 0 means 1024: a round trip of a fast link, at a few dozen octets of state each.
	Window int
	// Hold is how many octets of messages that are not done a source keeps, and a destination keeps of those it cannot deliver yet; 0 means 1 MiB. It bounds one message as well.
	Hold int

	// Carried: units go over carriers that neither lose nor reorder (see the package). At-most-once then gives up what the end of a carrier leaves under way, and does not go without order: such a carrier is that by itself.
	// Datagram, RTT, MinRTO, MaxRTO, Inactivity and Unanswered then mean nothing: how long to wait for a carrier is the caller's to say, by [Abort].
	Carried bool

	// Datagram is the longest datagram, in octets of UDP payload, 256 to 65000; 0 means 1200, which nearly every path carries (RFC 8085 section 3.2, RFC 9000 section 14).
	Datagram int
	// RTT is a round trip measured before, by a hello; 0 means that none was.
	RTT time.Duration
	// MinRTO and MaxRTO bound the retransmission timer; 0 means 1 s and 60 s (RFC 6298 rules 2.4 and 2.5).
	MinRTO, MaxRTO time.Duration
	// AckDelay is how long an acknowledgement waits for company; 0 means 25 ms. Every second datagram, and all that is out of order, is acknowledged at once; on a carrier, every eighth of the window.
	AckDelay time.Duration
	// Inactivity is after what silence of the other end a sequence ends; 0 means 10 min. An end with something to say asks for signs of life three times as often.
	Inactivity time.Duration
	// Unanswered is after what silence a sequence ends while something is awaited: a unit is not done, or [Await] said so. It counts from when that began, at the earliest. After a quarter of it a sign of life is asked for,
	// and from then on each eighth of it. 0 means as Inactivity, which bounds it, and asks for nothing further.
	Unanswered time.Duration
	// Instance tells the lives of this end apart: 0 or 1 in the first, greater in each life than before, up to 2^40. [Restore] counts by itself, from what is stored.
	Instance uint64
}

const (
	// maxLimit is the greatest number of WS-RM.
	maxLimit = math.MaxInt64
	// packetOverhead is what IP and UDP add to a datagram, in octets; it counts to the congestion window, so that many small datagrams are not free.
	packetOverhead = 28
	// unitReserve is what is kept free in a datagram beside a fragment, in octets: the longest header, and the head of the unit.
	unitReserve = 64
	// maxRanges bounds the ranges, and the nacks, of one acknowledgement.
	maxRanges = 32
	// reorderPackets is how many datagrams later one must be echoed to call an earlier one lost (RFC 5681 section 3.2, RFC 8985).
	reorderPackets = 3
	// initialRTO is that of RFC 6298 rule 2.1.
	initialRTO = time.Second
	// granularity is G of RFC 6298.
	granularity = time.Millisecond
	// farewells is how often the end of a sequence is told to an end that does not answer.
	farewells = 8
	// restoreSkip is how many datagram numbers are left out after a crash: more than can be sent between two stored states.
	restoreSkip = 1 << 20
	// maxInstance keeps numbers of datagrams within 64 bits.
	maxInstance = 1 << 40
	// sentMemory is how many of the last datagrams a moment of sending is kept of, to measure round trips: more than fit a window of full ones.
	sentMemory = 512
)

// withDefaults checks a configuration and fills in what is zero.
func (c Config) withDefaults() (Config, error) {
	bad := func(format string, args ...any) (Config, error) {
		return Config{}, &Error{Code: BadConfig, Err: fmt.Errorf(format, args...)}
	}
	or := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	if c.Limit == 0 {
		c.Limit = maxLimit
	}
	if c.Window == 0 {
		c.Window = 1024
	}
	if c.Hold == 0 {
		c.Hold = 1 << 20
	}
	if c.Datagram == 0 {
		c.Datagram = 1200
	}
	or(&c.MinRTO, time.Second)
	or(&c.MaxRTO, time.Minute)
	or(&c.AckDelay, 25*time.Millisecond)
	or(&c.Inactivity, 10*time.Minute)
	switch {
	case c.Assurance < AtMostOnce || c.Assurance > ExactlyOnce:
		return bad("no assurance")
	case c.Carried && c.Assurance == AtMostOnce && !c.Ordered:
		return bad("at-most-once without order needs no sequence on a carrier")
	case c.Limit > maxLimit:
		return bad("limit of %d, up to %d is possible", c.Limit, uint64(maxLimit))
	case c.Window < 64 || c.Window > 1<<16 || c.Window&(c.Window-1) != 0:
		return bad("window of %d, a power of two from 64 to 65536 is possible", c.Window)
	case c.Hold < 1 || c.Hold > 1<<30:
		return bad("%d octets held, 1 to 2^30 are possible", c.Hold)
	case c.Datagram < 256 || c.Datagram > 65000:
		return bad("datagrams of %d octets, 256 to 65000 are possible", c.Datagram)
	case c.Instance > maxInstance:
		return bad("instance %d, up to %d is possible", c.Instance, uint64(maxInstance))
	case c.RTT < 0 || c.MinRTO < 0 || c.MaxRTO < c.MinRTO || c.AckDelay < 0 || c.Inactivity < 0 || c.Unanswered < 0:
		return bad("times below 0, or a retransmission timer bounded the wrong way round")
	}
	return c, nil
}

// lossy tells whether what is delivered is done, and gaps are passed over: at-most-once over datagrams.
func (c *Config) lossy() bool { return c.Assurance == AtMostOnce && !c.Carried }

// maxUnit is the longest payload of one unit.
func (c *Config) maxUnit() int {
	if c.Carried {
		return c.Hold
	}
	return c.Datagram - unitReserve
}

// ackEvery is how many packets may go without an acknowledgement.
func (c *Config) ackEvery() int {
	if c.Carried {
		return c.Window / 8
	}
	return 2
}
