// Package fault is the form that the errors of packages have in common.
package fault

import "fmt"

// Code tells the kinds of errors of one package apart.
type Code interface {
	comparable
	// String is the code in words.
	String() string
	// From is what the text of each error begins with, with its colon and space.
	From() string
}

// Of is an error of a package. Two of the same code are the same to [errors.Is].
type Of[C Code] struct {
	Code C
	Err  error // the cause; may be nil
}

// Error is where the error is from, its code, and its cause.
func (e *Of[C]) Error() string {
	s := e.Code.From() + e.Code.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Of[C]) Is(t error) bool { o, ok := t.(*Of[C]); return ok && o.Code == e.Code }

// Unwrap returns the cause, if there is one.
func (e *Of[C]) Unwrap() error { return e.Err }

// At is an error of a package about its input. Two of the same code are the same to [errors.Is].
type At[C interface {
	comparable
	fmt.Stringer
}] struct {
	Code C
	At   int64 // the offset of what is wrong, in bytes
	Err  error // the cause; may be nil
}

// Error is where the input is wrong, its code, and its cause.
func (e *At[C]) Error() string {
	s := fmt.Sprintf("offset %d: %v", e.At, e.Code)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *At[C]) Is(t error) bool { o, ok := t.(*At[C]); return ok && o.Code == e.Code }

// Unwrap returns the cause, if there is one.
func (e *At[C]) Unwrap() error { return e.Err }
