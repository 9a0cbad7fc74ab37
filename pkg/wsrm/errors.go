package wsrm

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// BadConfig: a configuration that cannot work.
	BadConfig Code = iota + 1
	// BadState: a stored state that is none, or of another configuration.
	BadState
	// Misuse: an event that cannot happen now.
	Misuse
	// Full: the window, or the octets held, would be exceeded; there is room after the next [Acknowledged].
	Full
	// TooLarge: a message that the window or the octets held can never take.
	TooLarge
	// Closed: the sequence is closed or over (the fault SequenceClosed).
	Closed
	// Rollover: the positions are used up (the fault MessageNumberRollover).
	Rollover
	// Malformed: a datagram that is none.
	Malformed
	// Invalid: an acknowledgement of what was never sent, or that contradicts itself (the fault InvalidAcknowledgement); or numbers beyond the window.
	Invalid
	// LastMessageExceeded: a number above that of the last message (the fault LastMessageNumberExceeded of WS-RM 1.0).
	LastMessageExceeded
	// UnknownSequence: the datagram goes on with a sequence of which this end knows too little; the other end is told.
	UnknownSequence
	// Unstored: the state could not be stored.
	Unstored
)

var codeNames = map[Code]string{
	BadConfig: "bad configuration", BadState: "bad state", Misuse: "event out of place", Full: "window is full", TooLarge: "message is too large", Closed: "sequence is closed",
	Rollover: "numbers are used up", Malformed: "malformed datagram", Invalid: "invalid acknowledgement or number", LastMessageExceeded: "number above that of the last message",
	UnknownSequence: "unknown sequence", Unstored: "state could not be stored",
}

func (c Code) String() string { return codeNames[c] }

// Error is what this package returns.
type Error struct {
	Code Code
	Err  error
}

func (e *Error) Error() string {
	s := "wsrm: " + e.Code.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap gives the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// faults are the errors without a cause, made once: what an attacker provokes allocates nothing.
var faults = func() (all [Unstored + 1]*Error) {
	for c := range all {
		all[c] = &Error{Code: Code(c)}
	}
	return all
}()

func fault(c Code) error { return faults[c] }
