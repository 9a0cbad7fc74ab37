package peer

import "github.com/hhfr/hhfr/internal/fault"

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// BadConfig: services or a server that cannot work as configured.
	BadConfig Code = iota + 1
	// Failed: a listener failed.
	Failed
	// BadRanges: a list of IPv4 ranges that cannot be read.
	BadRanges
	// Slow: the body of a request came too slowly (see [Limits]).
	Slow
)

var codeNames = map[Code]string{
	BadConfig: "bad configuration", Failed: "listener failed", BadRanges: "address ranges", Slow: "body too slow",
}

func (c Code) String() string { return codeNames[c] }

// From implements [fault.Code].
func (Code) From() string { return "peer: " }

// Error is what this package returns.
type Error = fault.Of[Code]
