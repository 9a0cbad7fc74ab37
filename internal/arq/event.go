package arq

import (
	"time"

	"github.com/hhfr/hhfr/internal/window"
)

// EventKind is what happened to an engine.
type EventKind uint8

const (
	// Wake: the moment of the last [WakeAt] came. The only event that sends datagrams.
	Wake EventKind = iota + 1
	// Send: Message is to be sent. The engine keeps the slice until the message is [Acknowledged]
	// or the sequence has ended. Refused with Full, TooLarge, Closed or Rollover.
	Send
	// Arrived: Packet came from the network; the engine keeps nothing of it. Refused with Invalid,
	// UnknownSequence or LastMessageExceeded.
	Arrived
	// Committed: the message delivered with Number is done.
	Committed
	// Close: nothing more is sent; the sequence ends when all is done (WS-RM 1.1, sections 3.5 and
	// 3.6).
	Close
	// Ask: a sign of life of the peer is wanted, now and until there is one.
	Ask
	// Await: something of the peer is awaited that the sequences do not tell of, a reply; until
	// [Rest]. Counts for [Config.Unanswered].
	Await
	// Rest: nothing of that kind is awaited any more.
	Rest
	// Moved: the path to the peer is another one (RFC 9000 section 9.4). What was measured of the
	// one before is forgotten, and a sign of life is wanted at once: it tells what was lost on the
	// path.
	Moved
)

// Event is what happens to an engine; only the fields its kind names count.
type Event struct {
	Kind    EventKind
	Message []byte
	Packet  *window.Packet
	Number  uint64
}

// InstructionKind is what an engine wants.
type InstructionKind uint8

const (
	// Transmit: Packet is to be sent. It may get lost.
	Transmit InstructionKind = iota + 1
	// WakeAt: [Wake] is to be stepped at At, instead of any moment named before; a zero At: none.
	WakeAt
	// Deliver: Message of the peer, whose first unit has Number. The application answers with
	// [Committed].
	Deliver
	// Acknowledged: all messages up to Number are done at the peer.
	Acknowledged
	// Ended: the sequence is over, that of the peer if Remote; Reason says why.
	Ended
)

// Instruction is what an engine wants done; only the fields its kind names are set.
type Instruction struct {
	Kind    InstructionKind
	Reason  EndReason
	Remote  bool
	Number  uint64
	At      time.Time
	Message []byte
	Packet  *window.Packet
}

// EndReason is why a sequence ended.
type EndReason uint8

const (
	// Complete: all its messages are done.
	Complete EndReason = iota + 1
	// Aborted: its sender gave it up.
	Aborted
	// Inactive: nothing was heard of the peer for [Config.Inactivity], or [Config.Unanswered].
	Inactive
	// Unrecognized: the peer knows nothing of the sequence (the fault UnknownSequence).
	Unrecognized
)

var reasonNames = [...]string{
	Complete: "complete", Aborted: "aborted", Inactive: "inactive", Unrecognized: "unknown to the peer",
}

func (r EndReason) String() string { return reasonNames[r] }

// Stats count what an engine did, for people to look at.
type Stats struct {
	// Sent and Received are datagrams; Refused those that broke a rule.
	Sent, Received, Refused int64
	// AcksSent and AcksReceived are acknowledgements, alone or in datagrams with units.
	AcksSent, AcksReceived int64
	// Resent are units sent again, Duplicates units that arrived again.
	Resent, Duplicates int64
	// Timeouts is how often the retransmission timer fired, Undone how often that was wrong, Probes
	// how often the last datagram was sent again before it.
	Timeouts, Undone, Probes int64
	// RTT is the smoothed round trip, RTO the retransmission timer; 0 and its initial value before
	// the first echo.
	RTT, RTO time.Duration
	// Window and Flight are the congestion window and what is under way, in bytes with headers.
	Window, Flight int
}

// Stats is what the engine did so far.
func (e *Endpoint) Stats() Stats {
	s := e.stats
	s.Duplicates = e.in.Duplicates
	s.RTT, s.RTO, s.Window, s.Flight = e.out.srtt, e.out.rto, e.out.cwnd, e.out.bytes
	return s
}
