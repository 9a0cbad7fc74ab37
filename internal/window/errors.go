package window

import "github.com/hhfr/hhfr/internal/fault"

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// Misuse: what cannot be asked for now.
	Misuse Code = iota + 1
	// Full: the window, or the bytes held, would be exceeded; more fits after the next
	// acknowledgement.
	Full
	// TooLarge: a message that the window or the bytes held can never take.
	TooLarge
	// Closed: the sequence is closed or over (the fault SequenceClosed).
	Closed
	// Rollover: the numbers are used up (the fault MessageNumberRollover).
	Rollover
	// Malformed: a packet that is none.
	Malformed
	// Invalid: an acknowledgement of what was never sent, or that contradicts itself (the fault
	// InvalidAcknowledgement); or numbers beyond the window.
	Invalid
	// LastMessageExceeded: a number above that of the last message (the fault
	// LastMessageNumberExceeded of WS-RM 1.0).
	LastMessageExceeded
	// UnknownSequence: the packet goes on with a sequence of which this end knows too little; the
	// peer is told.
	UnknownSequence
	codes
)

var codeNames = [codes]string{
	Misuse: "event out of place", Full: "window is full", TooLarge: "message is too large",
	Closed: "sequence is closed", Rollover: "numbers are used up", Malformed: "malformed packet",
	Invalid:             "invalid acknowledgement or number",
	LastMessageExceeded: "number above that of the last message", UnknownSequence: "unknown sequence",
}

func (c Code) String() string { return codeNames[c] }

// From implements [fault.Code].
func (Code) From() string { return "" }

// Error is what this package and internal/arq return.
type Error = fault.Of[Code]

// faults are the errors without a cause, made once: what an attacker provokes allocates nothing.
var faults = func() (all [codes]*Error) {
	for c := range all {
		all[c] = &Error{Code: Code(c)}
	}
	return all
}()

// Fault is the error of a code, without a cause.
func Fault(c Code) error { return faults[c] }
