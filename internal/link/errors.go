package link

// Code is the kind of an [Error].
type Code uint8

const (
	// BadProfile: an invalid profile.
	BadProfile Code = iota + 1
	// Unsupported: a profile that a relay of bytes cannot implement.
	Unsupported
	// Closed: the link was closed.
	Closed
)

var codeNames = map[Code]string{BadProfile: "bad profile", Unsupported: "not for a relay of bytes", Closed: "closed"}

func (c Code) String() string { return codeNames[c] }

// Error is the error of this package; the errors of connections are those of package net.
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

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }
