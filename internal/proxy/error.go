package proxy

import "fmt"

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

// Error is what this package returns. At is a byte offset, -1 when there is none.
type Error struct {
	Code Code
	At   int64
	Err  error
}

func (e *Error) Error() string {
	s := "proxy: " + e.Code.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }

func badConfig(format string, args ...any) error {
	return &Error{Code: BadConfig, At: -1, Err: fmt.Errorf(format, args...)}
}

func malformed(format string, args ...any) error {
	return &Error{Code: Malformed, At: -1, Err: fmt.Errorf(format, args...)}
}
