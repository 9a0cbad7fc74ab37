package flow

import "fmt"

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// NoCapture: the input is neither pcap nor pcapng, nor one of them in gzip.
	NoCapture Code = iota + 1
	// Truncated: the input ends inside a packet or block.
	Truncated
	// Malformed: the input is damaged from an offset on.
	Malformed
	// ReadFailed: the input could not be read.
	ReadFailed
)

var codeNames = map[Code]string{
	NoCapture:  "not a capture",
	Truncated:  "capture is cut off",
	Malformed:  "capture is damaged",
	ReadFailed: "reading the capture",
}

func (c Code) String() string { return codeNames[c] }

// Error is the error of this package. At is an offset in the capture, after gzip, in bytes: the
// beginning of the packet or block that could not be read.
type Error struct {
	Code Code
	At   int64
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("offset %d: %s", e.At, e.Code)
	}
	return fmt.Sprintf("offset %d: %s: %v", e.At, e.Code, e.Err)
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }
