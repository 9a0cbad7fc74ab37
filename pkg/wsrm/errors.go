package wsrm

import (
	"errors"

	"github.com/hhfr/hhfr/internal/window"
)

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// BadConfig: a configuration that cannot work.
	BadConfig Code = iota + 1
	// BadState: a stored state that is none, or of another configuration.
	BadState
	// Refused: an event that cannot happen now, or that breaks a rule of the sequence; Err says
	// which.
	Refused
	// Full: the window, or the bytes held, would be exceeded; more fits after the next
	// [Acknowledged].
	Full
	// Unstored: the state could not be stored.
	Unstored
)

var codeNames = map[Code]string{
	BadConfig: "bad configuration", BadState: "bad state", Refused: "refused", Full: "window is full",
	Unstored: "state could not be stored",
}

func (c Code) String() string { return codeNames[c] }

// Error is the code in words: an [Error] is its code, for [errors.Is].
func (c Code) Error() string { return codeNames[c] }

// Error is what this package returns.
type Error struct {
	Code Code
	Err  error
}

func (e *Error) Error() string {
	s := "wsrm: " + e.Code.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes: with one, or with that of another Error.
func (e *Error) Is(target error) bool {
	o, ok := target.(*Error)
	return target == e.Code || ok && o.Code == e.Code
}

// Unwrap gives the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }

var errFull = &Error{Code: Full}

// refused is the error of an event that the machine refuses.
func refused(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, window.Fault(window.Full)) {
		return errFull
	}
	return &Error{Code: Refused, Err: err}
}
