package http1

import "fmt"

// Code is the kind of an [Error].
type Code uint8

const (
	// Incomplete: more bytes are needed.
	Incomplete Code = iota + 1
	// TooLarge: a head, a chunk line or a trailer section is above its limit.
	TooLarge
	// Malformed: the bytes are no HTTP/1.x.
	Malformed
	// Conflict: the framing fields contradict each other, so that two readers could see two
	// messages (RFC 9112, section 11.2).
	Conflict
	// Invalid: a value passed to an append function cannot be part of a head.
	Invalid
)

var codeNames = map[Code]string{
	Incomplete: "more bytes are needed", TooLarge: "above the limit", Malformed: "malformed",
	Conflict: "framing fields contradict each other", Invalid: "cannot stand in a head",
}

func (c Code) String() string { return codeNames[c] }

// ErrIncomplete is returned by [ParseHead] and [Body.Close] when the input ends too early; compare
// with errors.Is.
var ErrIncomplete error = &Error{Code: Incomplete}

// Error is the error of this package. At is a byte offset: into the head for [ParseHead] and the
// framing functions, into the raw body for [Body]. What names the part that was being read.
type Error struct {
	Code Code
	At   int64
	What string
	Err  error
}

func (e *Error) Error() string {
	s := ""
	if e.Code != Invalid { // a passed value has no offset
		s = fmt.Sprintf("http offset %d: ", e.At)
	}
	if e.What != "" {
		s += e.What + ": "
	}
	s += e.Code.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }
