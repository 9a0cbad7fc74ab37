package replay

// Code is the kind of an [Error].
type Code uint8

const (
	// Nothing: a capture has no request that could be sent again.
	Nothing Code = iota + 1
	// BadTarget: a URL, or HTTP fields, with which nothing can be sent.
	BadTarget
)

var codeNames = map[Code]string{Nothing: "nothing to replay", BadTarget: "bad target"}

func (c Code) String() string { return codeNames[c] }

// Error is the error type of this package; errors of reading and sending are returned as well. At
// is a byte offset, -1 when there is none.
type Error struct {
	Code Code
	At   int64
	Err  error
}

func (e *Error) Error() string {
	s := "replay: " + e.Code.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }
