package frame

import (
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/internal/bin"
	faults "github.com/hhfr/hhfr/internal/fault"
)

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// Truncated: a frame's body, or a payload, ends inside a field.
	Truncated Code = iota + 1
	// Overlong: an integer is not in its shortest form.
	Overlong
	// TooLarge: a length or count is above what the format or the receiver allows.
	TooLarge
	// BadMark: the mark of a hello or sync is not the one of section 3 or 6.
	BadMark
	// BadKind: a kind that is not known, without the skip bit; or a known one with it.
	BadKind
	// Trailing: octets are left over after the last field.
	Trailing
	// BadValue: a field has a value it cannot have.
	BadValue
	// BadOrder: a list of a sync is not strictly ascending.
	BadOrder
	// BadSum: the own check of a sync is wrong.
	BadSum
	// BadNumber: lane or exchange of a data frame cannot be told, or break the order of section 5.
	BadNumber
	// BadState: a fragment does not fit what its message has had so far; or a piece of a shape does
	// not follow the one before.
	BadState
	// Unsupported: a hello of another scheme.
	Unsupported
)

var codeNames = map[Code]string{
	Truncated: "ends inside a field", Overlong: "integer is not in its shortest form",
	TooLarge: "length above the limit", BadMark: "wrong mark",
	BadKind: "unknown kind", Trailing: "octets left over", BadValue: "impossible value", BadOrder: "list not ascending",
	BadSum:    "own check is wrong",
	BadNumber: "lane or exchange out of order", BadState: "fragment out of place", Unsupported: "unsupported scheme",
}

func (c Code) String() string { return codeNames[c] }

// Error is why octets are no frame, or not one that may stand where it stands. At is the offset in
// the direction, in octets, of the field that is wrong.
type Error = faults.At[Code]

func fault(code Code, at int64, format string, args ...any) *Error {
	return &Error{Code: code, At: at, Err: fmt.Errorf(format, args...)}
}

var fromBin = map[bin.Code]Code{bin.Truncated: Truncated, bin.Overlong: Overlong, bin.TooLarge: TooLarge}

// own turns the failure of a cursor into an [Error].
func own(err error) error {
	var e *bin.Error
	if errors.As(err, &e) {
		return &Error{Code: fromBin[e.Code], At: e.At, Err: err}
	}
	return err
}
