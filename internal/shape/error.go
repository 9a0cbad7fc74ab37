package shape

import "fmt"

// Code tells kinds of [Error] apart.
type Code uint8

const (
	// Invalid: a serialization or tree that is no canonical shape.
	Invalid Code = iota + 1
	// TooLarge: beyond a limit of this package (limits.go) or one the caller gave.
	TooLarge
	// Malformed: content that the shape does not fit.
	Malformed
	// Unlearnable: a message from which no shape can be made.
	Unlearnable
)

var codeNames = map[Code]string{
	Invalid:     "invalid shape",
	TooLarge:    "over the limit",
	Malformed:   "malformed content",
	Unlearnable: "no shape can be learned",
}

func (c Code) String() string { return codeNames[c] }

// Error is the error of this package. At is an offset in bytes: into the serialization (Invalid),
// the segment (Malformed) or the message (Unlearnable).
type Error struct {
	Code Code
	At   int64
	What string
	Err  error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: offset %d: %s", e.Code, e.At, e.What)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
