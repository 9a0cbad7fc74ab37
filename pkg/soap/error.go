package soap

import "fmt"

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// Malformed: the bytes are not well-formed XML of the kind expected.
	Malformed Code = iota + 1
	// NoEnvelope: well-formed, but no SOAP envelope of a known version.
	NoEnvelope
	// TooLarge: longer, deeper or of more elements than the limits allow.
	TooLarge
	// Forbidden: a document type declaration, which SOAP excludes.
	Forbidden
	// BadCharset: an encoding other than UTF-8 where only that is read.
	BadCharset
	// BadVersion: an unknown SOAP version.
	BadVersion
	// BadField: a value that cannot stand in an HTTP field.
	BadField
)

var codeNames = map[Code]string{
	Malformed:  "malformed XML",
	NoEnvelope: "no SOAP envelope",
	TooLarge:   "above the limit",
	Forbidden:  "document type declaration refused",
	BadCharset: "unsupported character encoding",
	BadVersion: "unknown SOAP version",
	BadField:   "not a valid field value",
}

func (c Code) String() string { return codeNames[c] }

// Error is what this package returns. At is the offset of the offending byte, -1 when it is not
// known.
type Error struct {
	Code Code
	At   int64
	Err  error
}

func (e *Error) Error() string {
	s := e.Code.String()
	if e.At >= 0 {
		s = fmt.Sprintf("offset %d: %s", e.At, s)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }
