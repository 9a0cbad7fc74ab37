// Package soaprm speaks WS-ReliableMessaging as the rest of the SOAP world does: 1.0 (February
// 2005) and 1.1 and 1.2 (OASIS 200702) as header blocks and messages of their own, with both
// versions of WS-Addressing, over plain SOAP in HTTP.
//
// A [SequenceDestination] is the RM destination of the messages that clients send, and the source
// of the replies: a handler of net/http in front of services. A [SequenceSource] is the reverse: it
// sends messages to a service, and is the destination of its replies. The sequences of both are
// those of package wsrm, one [wsrm.Engine] for each pair, with their states in a context store:
// exactly once, in the order of the numbers at a destination, over crashes of either end.
//
// # Acknowledgements
//
// A number is acknowledged when its message is done: handled, and stored with its effect and its
// reply. So none is ever taken back. A destination acknowledges on every response of the sequence
// (1.1, section 3.9). A source acknowledges replies on its next request, or, if there is none
// within [SourceConfig.AckDelay], in a message of its own.
//
// # Replies on the connection
//
// The reply to a request goes on the HTTP response of that request, or, if that was lost, of the
// same request when it comes again: it is kept until the client acknowledges it. A client that made
// no Offer cannot; then the last replies are kept (1.1, section 3.4).
//
// # Replies elsewhere
//
// A client may name another address. A destination sends there what it would have answered, replies
// until they are acknowledged, if the address is of the host that the request comes from, or of one
// in [DestinationConfig.Callbacks]. For who cannot be reached it keeps them until they are asked
// for (WS-MakeConnection 1.1). A source does either by [SourceConfig].
package soaprm

import (
	"errors"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// Protocol is a version of WS-ReliableMessaging on the wire.
type Protocol string

const (
	// V10 is 1.0, of February 2005.
	V10 Protocol = "1.0"
	// V11 is 1.1, and 1.2, which does not differ from it on the wire.
	V11 Protocol = "1.1"
)

// ParseProtocol reads "1.0", "1.1" or "1.2"; ok is false for anything else.
func ParseProtocol(s string) (v Protocol, ok bool) {
	switch s {
	case "1.0":
		return V10, true
	case "1.1", "1.2":
		return V11, true
	}
	return "", false
}

// Namespace is that of the version's elements, and begins its actions.
func (v Protocol) Namespace() string { return header.Namespace(string(v)) }

// Addressing is the namespace of the WS-Addressing that the version was published with.
func (v Protocol) Addressing() string {
	if v == V10 {
		return addressing.V200408
	}
	return addressing.V200508
}

// action is the action of a message of the protocol (1.1, sections 3.4 to 3.9).
func (v Protocol) action(name string) string { return v.Namespace() + "/" + name }

// faultAction is that of faults: 1.1 has one of its own (section 4).
func (v Protocol) faultAction(space string) string {
	if v == V11 {
		return v.action("fault")
	}
	return addressing.FaultAction(space)
}

// Names of bodies and actions.
const (
	createSequence         = "CreateSequence"
	createSequenceResponse = "CreateSequenceResponse"
	closeSequence          = "CloseSequence"
	closeSequenceResponse  = "CloseSequenceResponse"
	terminateSequence      = "TerminateSequence"
	terminateResponse      = "TerminateSequenceResponse"
	lastMessage            = "LastMessage"
	ackRequested           = "AckRequested"
	acknowledgementOnly    = "SequenceAcknowledgement"
)

// Subcodes of faults (1.1, section 4; 1.0, section 4).
const (
	sequenceTerminated = "SequenceTerminated"
	unknownSequence    = "UnknownSequence"
	invalidAck         = "InvalidAcknowledgement"
	rollover           = "MessageNumberRollover"
	createRefused      = "CreateSequenceRefused"
	lastExceeded       = "LastMessageNumberExceeded"
	sequenceClosed     = "SequenceClosed"
	rmRequired         = "WSRMRequired"
)

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// BadConfig: a configuration that cannot work.
	BadConfig Code = iota + 1
	// Refused: the peer does not speak WS-ReliableMessaging, or refused the sequence.
	Refused
	// Misaddressed: the peer wants another version of WS-Addressing.
	Misaddressed
	// Unstored: the state could not be read or stored.
	Unstored
	// Unanswered: the peer did not answer often enough; what is not acknowledged stays in the
	// store.
	Unanswered
	// FateUnknown: the peer lost the sequence; whether a message that was sent was handled, nobody
	// knows. It is not sent again.
	FateUnknown
	// Unsent: the sequence ended before the message was sent.
	Unsent
	// ReplyLost: the message is acknowledged, but its reply did not come.
	ReplyLost
	// TooLarge: a message longer than [MaxMessage].
	TooLarge
	// Closed: the source was closed.
	Closed
)

var codeNames = map[Code]string{
	BadConfig: "bad configuration", Refused: "refused", Misaddressed: "refused", Unstored: "state could not be stored",
	Unanswered: "no answer", FateUnknown: "fate unknown", Unsent: "not sent", ReplyLost: "no reply",
	TooLarge: "message is too large", Closed: "closed",
}

func (c Code) String() string { return codeNames[c] }

// Error is the code in words: an [Error] is its code, for [errors.Is].
func (c Code) Error() string { return codeNames[c] }

// Error is what this package returns.
type Error struct {
	Code Code
	// Fault is the name of the fault of WS-ReliableMessaging by which a peer that speaks it refused
	// a sequence (1.1, section 4); else empty.
	Fault string
	Err   error
}

func (e *Error) Error() string {
	s := "WS-ReliableMessaging: " + e.Code.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes: with one, or with that of another Error.
func (e *Error) Is(target error) bool {
	o, ok := target.(*Error)
	return target == e.Code || ok && o.Code == e.Code
}

// Unwrap gives the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// peerFault is the fault in an answer of a peer as an error.
type peerFault struct{ soap.Fault }

func (f peerFault) Error() string {
	if f.Subcode != "" {
		return f.Subcode + ": " + f.Reason
	}
	return f.Reason
}

// refusedBy is the error for who wanted a sequence and got another answer.
func refusedBy(why error) *Error {
	var f peerFault
	if errors.As(why, &f) && (f.Subcode == "MessageAddressingHeaderRequired" || // 1.0 SOAP Binding, section 6.4
		f.Subcode == "MessageInformationHeaderRequired") { // 2004, section 4.2
		return &Error{Code: Misaddressed, Err: why}
	}
	return &Error{Code: Refused, Err: why}
}
