package replay

import "github.com/hhfr/hhfr/internal/fault"

// Code is the kind of an [Error].
type Code uint8

const (
	// Nothing: a capture has no request that could be sent again.
	Nothing Code = iota + 1
	// BadTarget: a URL, or HTTP fields, with which nothing can be sent.
	BadTarget
)

var codeNames = map[Code]string{Nothing: "nothing to replay", BadTarget: "bad target"}

func (c Code) String() string { return codeNames[c] }

// From implements [fault.Code].
func (Code) From() string { return "replay: " }

// Error is the error type of this package; errors of reading and sending are returned as well.
type Error = fault.Of[Code]
