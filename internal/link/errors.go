package link

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// BadProfile: a profile that is none.
	BadProfile Code = iota + 1
	// Unsupported: a profile that a relay of bytes cannot be.
	Unsupported
	// Closed: the link was closed.
	Closed
)

var codeNames = map[Code]string{BadProfile: "bad profile", Unsupported: "not for a relay of octets", Closed: "closed"}

func (c Code) String() string { return codeNames[c] }

// Error is what this package returns, but for the errors of connections, which are as those of
// package net.
type Error struct {
	Code Code
	Err  error
}

func (e *Error) Error() string {
	s := "link: " + e.Code.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap gives the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }
