package wsrm

import "time"

// EventKind is what happened to an engine.
type EventKind uint8

const (
	// Wake: the moment of the last [WakeAt] came. The only event by which something is sent.
	Wake EventKind = iota + 1
	// Send: Message is to be sent. The engine keeps the slice until the message is [Acknowledged]
	// or reported otherwise. Refused as Full when it may be accepted later.
	Send
	// Arrived: Message came over the carrier with Number; the engine keeps nothing of it.
	Arrived
	// Heard: the peer said Message of the sequences, what its engine wanted by [Say].
	Heard
	// Committed: the message delivered with Number is done, and Message, unless it is nil, is to be
	// sent as its reply: both or, if refused as Send is, neither.
	Committed
	// Close: nothing more is sent; the sequence ends when all is done (WS-RM 1.1, sections 3.5 and
	// 3.6).
	Close
	// Ask: a sign of life of the peer is wanted now.
	Ask
	// Abort: the sequence of this end ends at once; what is not done is reported.
	Abort
	// Connected: there is a new carrier. Whatever is not done is sent again; at-most-once: what was
	// not sent.
	Connected
	// Disconnected: the carrier is gone; nothing is sent until there is another. At-most-once gives
	// up what was transmitted and is not done, but for the messages from Number on, if that is not
	// 0: the carrier was never handed those.
	Disconnected
)

// Event is what happens to an engine; only the fields its kind names count.
type Event struct {
	Kind    EventKind
	Message []byte
	Number  uint64
}

// ActionKind is what an engine wants.
type ActionKind uint8

const (
	// Transmit: Message is to be sent with Number over the carrier.
	Transmit ActionKind = iota + 1
	// Say: Message is to be said to the peer, of the sequences. Of those not said yet only the last
	// counts that Asks, and the last that Acks.
	Say
	// WakeAt: [Wake] is to be stepped at At, instead of any moment named before; a zero At: none.
	WakeAt
	// Deliver: Message of the peer has Number. The application answers with [Committed].
	Deliver
	// Acknowledged: all messages up to Number are done at the peer. At-most-once: done with; those
	// lost were reported as Lost before.
	Acknowledged
	// Lost: at-most-once; Count messages from Number on were not known to be done when the carrier
	// ended.
	Lost
	// Unknown: Count messages from Number on were sent, and it is not known whether they were
	// delivered; they are not sent again. Remote: they are messages of the peer, begun here before
	// a crash ([Engine.Begin]).
	Unknown
	// Unsent: Count messages from Number on were accepted and never sent.
	Unsent
	// Ended: the sequence is over, that of the peer if Remote; Reason says why.
	Ended
)

// Action is what an engine wants done; only the fields its kind names are set.
type Action struct {
	Kind    ActionKind
	Reason  Reason
	Remote  bool
	Asks    bool // for an answer
	Acks    bool // acknowledges
	Number  uint64
	Count   uint64
	At      time.Time
	Message []byte
}

// Reason is why a sequence ended. Its numbers stand in stored states.
type Reason uint8

const (
	// Complete: all its messages are done.
	Complete Reason = 1
	// Aborted: its source gave it up.
	Aborted Reason = 2
	// Unrecognized: the destination knows nothing of the sequence, or lost what it knew (the fault
	// UnknownSequence).
	Unrecognized Reason = 4
)

var reasonNames = map[Reason]string{
	Complete: "complete", Aborted: "aborted", Unrecognized: "unknown to the peer",
}

func (r Reason) String() string { return reasonNames[r] }
