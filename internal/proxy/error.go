package proxy

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/fault"
)

// Code is the kind of an [Error].
type Code uint8

const (
	// BadConfig: a Config that cannot work.
	BadConfig Code = iota + 1
	// Malformed: an invalid message of the other proxy.
	Malformed
	// Unreachable: no connection to the upstream.
	Unreachable
	// Failed: a listener failed.
	Failed
	// Closed: the proxy was closed.
	Closed
	// NoRoom: the maximum number of connections to the upstream is reached.
	NoRoom
	// NoRoute: no route takes a request.
	NoRoute
)

var codeNames = map[Code]string{
	BadConfig: "bad configuration", Malformed: "malformed message", Unreachable: "no connection to the upstream",
	Failed: "listener failed", Closed: "closed",
	NoRoom: "too many connections to the upstream", NoRoute: "no route",
}

func (c Code) String() string { return codeNames[c] }

// From implements [fault.Code].
func (Code) From() string { return "proxy: " }

// Error is what this package returns.
type Error = fault.Of[Code]

func badConfig(format string, args ...any) error {
	return &Error{Code: BadConfig, Err: fmt.Errorf(format, args...)}
}

func malformed(format string, args ...any) error {
	return &Error{Code: Malformed, Err: fmt.Errorf(format, args...)}
}
