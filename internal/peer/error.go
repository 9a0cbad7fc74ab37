package peer

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// BadConfig: services or a server that cannot work as configured.
	BadConfig Code = iota + 1
	// Failed: a listener failed.
	Failed
	// BadRanges: a list of IPv4 ranges that cannot be read.
	BadRanges
	// Slow: the body of a request came too slowly (see [Limits]).
	Slow
)

var codeNames = map[Code]string{
	BadConfig: "bad configuration", Failed: "listener failed", BadRanges: "address ranges", Slow: "body too slow",
}

func (c Code) String() string { return codeNames[c] }

// Error is what this package returns. At is an offset in bytes, -1 when there is none.
type Error struct {
	Code Code
	At   int64
	Err  error
}

func (e *Error) Error() string {
	s := "peer: " + e.Code.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap gives the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }
