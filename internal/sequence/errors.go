package sequence

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/fault"
)

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// BadConfig: a configuration that cannot work, or that a stored state contradicts.
	BadConfig Code = iota + 1
	// Kept: the message is accepted and lies in the store; whether it is done is not known yet. A
	// sequence that is opened on the same store goes on with it.
	Kept
	// FateUnknown: the message was sent, and nobody will ever know whether it was processed. It is
	// not sent again.
	FateUnknown
	// Unsent: the message was not sent, and will not be.
	Unsent
	// TooLarge: the message is longer than a sequence takes.
	TooLarge
	// Unstored: the store failed; the sequence is of no use any more, and what the store has goes
	// on when it is opened again.
	Unstored
	// Outdated: the peer has messages of the sequence that the store does not know to be sent: the
	// store is a copy from earlier. What was sent now has the numbers of those, and nobody knows
	// what became of it; the sequence cannot go on.
	Outdated
)

var codeNames = map[Code]string{BadConfig: "bad configuration", Kept: "kept for later", FateUnknown: "fate unknown",
	Unsent: "not sent", TooLarge: "message is too large", Unstored: "state could not be stored",
	Outdated: "state is older than what the peer has"}

func (c Code) String() string { return codeNames[c] }

// From implements [fault.Code].
func (Code) From() string { return "sequence: " }

// Error is what this package returns.
type Error = fault.Of[Code]

func tooLarge(length, most int64) error {
	return &Error{Code: TooLarge, Err: fmt.Errorf("%d bytes or more, %d go", length, most)}
}
