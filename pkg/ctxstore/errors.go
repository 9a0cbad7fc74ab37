package ctxstore

import (
	"errors"
	"fmt"
	"strings"
)

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// NotFound: nothing is stored under the URI, or the store to open does not exist.
	NotFound Code = iota + 1
	// Conflict: the entry's revision is not the expected one.
	Conflict
	// Invalid: the URI, value or option can never be stored.
	Invalid
	// Corrupt: what is stored is not what was put there.
	Corrupt
	// Full: no space, on the medium or within the store's own limit.
	Full
	// Permission: the store may not be read or written, or was opened for reading only.
	Permission
	// Closed: the store was closed.
	Closed
	// Unavailable: the medium failed in another way.
	Unavailable
	// Held: another user holds the entry.
	Held
)

var codeNames = [...]string{
	NotFound: "not found", Conflict: "revision conflict", Invalid: "invalid", Corrupt: "corrupt", Full: "full",
	Permission: "no permission", Closed: "store closed", Unavailable: "unavailable", Held: "in use",
}

// String is the code in words.
func (c Code) String() string {
	if int(c) < len(codeNames) && codeNames[c] != "" {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Error is the code in words: an error of a store is its code, for [errors.Is].
func (c Code) Error() string { return c.String() }

// Error is the type of every error of a store. [errors.Is] compares it with a code.
type Error struct {
	Code Code
	URI  string // of the entry; empty if the error is not about one
	At   string // file, folder or address; empty in memory
	Hint string // what the operator can do; may be empty
	Err  error  // the cause; may be nil
}

// Error gives what, where, why, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("context store")
	if e.At != "" {
		fmt.Fprintf(&b, " %q", e.At)
	}
	if e.URI != "" {
		fmt.Fprintf(&b, ": %q", e.URI)
	}
	fmt.Fprintf(&b, ": %s", e.Code)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

// Is compares codes: with one, or with that of another Error.
func (e *Error) Is(target error) bool {
	o, ok := target.(*Error)
	return target == e.Code || ok && o.Code == e.Code
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

var reasons = map[Code]string{
	Corrupt: "what is stored is damaged", Full: "the store is full", Closed: "the store is closed",
	Permission: "the store may not be read or written", Unavailable: "the store cannot be reached",
	Held: "what is stored is in use", Conflict: "what is stored was changed meanwhile",
}

// Reason is what clients are told of an error: what kind of trouble there is. The error itself may
// name files and addresses that are none of their business.
func Reason(err error) string {
	var e *Error
	if errors.As(err, &e) && reasons[e.Code] != "" {
		return reasons[e.Code]
	}
	return "the store failed"
}
