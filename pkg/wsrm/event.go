package wsrm

import "time"

// EventKind tells what happened to an engine.
type EventKind uint8

const (
	// Wake: the moment of the last [WakeAt] came. The only event that sends datagrams.
	Wake EventKind = iota + 1
	// Send: Message is to be sent. The engine keeps the slice until the message is [Acknowledged] or reported otherwise. Refused with Full, TooLarge, Closed or Rollover.
	Send
	// Arrived: Packet came from the network; the engine keeps nothing of it. On a carrier, units come in packets without number and with Floor 1. Refused with Invalid, UnknownSequence or LastMessageExceeded.
	Arrived
	// Begun: the handler of the message delivered with Number is about to run, and has effects that no transaction covers. After a crash that message is [Unknown] and not delivered again.
	Begun
	// Committed: the message delivered with Number is done, and Message, unless it is nil, is to be sent as its reply: both or, if refused as Send is, neither. Not for at-most-once, but on a carrier.
	Committed
	// Close: nothing more is sent; the sequence ends when all is done (WS-RM 1.1, 3.5 and 3.6 Closing and Terminating a Sequence).
	Close
	// Ask: a sign of life of the other end is wanted, now and until there is one; with [Config.Carried], now.
	Ask
	// Abort: the sequence of this end ends at once; what is not done is reported.
	Abort
	// Connected: with [Config.Carried], there is a new carrier. Whatever is not done is sent again; at-most-once: what was not sent.
	Connected
	// Disconnected: the carrier is gone; nothing is sent until there is another. At-most-once gives up what was transmitted and is not done, but for the units from Number on, if that is not 0: the carrier was never handed those.
	Disconnected
	// Await: something of the other end is awaited that the sequences do not tell of, a reply; until [Rest]. Counts for [Config.Unanswered].
	Await
	// Rest: it is not any more.
	Rest
	// Moved: the path to the other end is another one (RFC 9000 section 9.4). What was measured of the one before is forgotten, and a sign of life is wanted at once: it tells what was lost on the way.
	Moved
)

// Event is what happens to an engine; only the fields its kind names count.
type Event struct {
	Kind    EventKind
	Message []byte
	Packet  *Packet
	Number  uint64
}

// ActionKind tells what an engine wants.
type ActionKind uint8

const (
	// Transmit: Packet is to be sent. It may get lost. With [Config.Carried] it has units, each a whole message, and only they count; or it has none, and all else counts.
	Transmit ActionKind = iota + 1
	// WakeAt: [Wake] is to be stepped at At, instead of any moment named before; a zero At: none.
	WakeAt
	// Deliver: Message of the other end, Count units from Number on. But for at-most-once over datagrams the application answers with [Committed].
	Deliver
	// Acknowledged: all messages up to position Number are done at the other end. At-most-once: done with; those lost were reported as Lost before.
	Acknowledged
	// Lost: at-most-once; Count units from Number on were lost, or their acknowledgement was; on a carrier: those not known to be done when it ended.
	Lost
	// Unknown: Count units from Number on were sent, and it is not known whether their messages were delivered; they are not sent again. Remote: they are messages of the other end, Begun here before a crash.
	Unknown
	// Unsent: Count units from Number on were accepted and never sent.
	Unsent
	// Ended: the sequence is over, that of the other end if Remote; Reason says why.
	Ended
)

// Action is what an engine wants done; only the fields its kind names are set.
type Action struct {
	Kind    ActionKind
	Reason  Reason
	Remote  bool
	Number  uint64
	Count   uint64
	At      time.Time
	Message []byte
	Packet  *Packet
}

// Reason is why a sequence ended.
type Reason uint8

const (
	// Complete: all its messages are done.
	Complete Reason = iota + 1
	// Aborted: its source gave it up.
	Aborted
	// Inactive: nothing was heard of the other end for [Config.Inactivity], or [Config.Unanswered].
	Inactive
	// Unrecognized: the destination knows nothing of the sequence, or lost what it knew (the fault UnknownSequence).
	Unrecognized
)

var reasonNames = map[Reason]string{Complete: "complete", Aborted: "aborted", Inactive: "inactive", Unrecognized: "unknown to the other end"}

func (r Reason) String() string { return reasonNames[r] }

// Stats count what an engine did, for people to look at.
type Stats struct {
	// Sent and Received are datagrams; Refused those that broke a rule.
	Sent, Received, Refused int64
	// AcksSent and AcksReceived are acknowledgements, alone or in datagrams with units.
	AcksSent, AcksReceived int64
	// Resent are units sent again, Duplicates units that arrived again, Timeouts how often the retransmission timer fired, Undone how often that was wrong, Probes how often the last datagram was sent again before it.
	Resent, Duplicates, Timeouts, Undone, Probes int64
	// GivenUp are units of either direction that at-most-once gave up with a carrier.
	GivenUp int64
	// RTT is the smoothed round trip, RTO the retransmission timer; 0 and its initial value before the first echo.
	RTT, RTO time.Duration
	// Window and Flight are the congestion window and what is under way, in octets with headers.
	Window, Flight int
}

// Stats tells how things are.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.RTT, s.RTO, s.Window, s.Flight = e.out.srtt, e.out.rto, e.out.cwnd, e.out.flight
	return s
}
