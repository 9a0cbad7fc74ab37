package negotiate

import "fmt"

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// BadConfig: a Config or a URL that cannot work.
	BadConfig Code = iota + 1
	// Malformed: an offer, an answer, a stored context or a message's head that is not well-formed.
	Malformed
	// NoHHFR: nothing was agreed, and plain SOAP is not wanted.
	NoHHFR
	// Unreachable: no connection to the peer; nothing was sent.
	Unreachable
	// FateUnknown: the request was written, at least in part, and no reply came. It was not sent
	// again, and may have been processed.
	FateUnknown
	// Unsent: the request was not sent, and cannot be sent over another path since its body is
	// read.
	Unsent
	// Refused: the peer answered a one-way message over HTTP with a status that means that it did
	// not take the message.
	Refused
	// Kept: the message is in the store, and not known to be committed. A session with the same
	// store and URL continues with it.
	Kept
	// Accepted: the message was accepted by an earlier run, and is not sent again (Config.Resume).
	Accepted
	// OtherRun: the messages are not those of the run to continue, as far as that was accepted
	// (Config.Resume). None of them was sent.
	OtherRun
	// OldStore: the store has an interrupted run of a version that did not record which messages
	// were accepted (Config.Resume). A session without Resume finishes it.
	OldStore
	// Closed: the session or responder was closed.
	Closed
)

var codeNames = map[Code]string{
	BadConfig:   "bad configuration",
	Malformed:   "malformed",
	NoHHFR:      "no HHFR",
	Unreachable: "no connection",
	FateUnknown: "fate unknown",
	Unsent:      "not sent",
	Refused:     "refused",
	Kept:        "pending in the store, not known to be committed",
	Accepted:    "accepted already",
	OtherRun:    "no run to resume",
	OldStore:    "the store does not say which messages were accepted: an older version wrote it",
	Closed:      "closed",
}

func (c Code) String() string { return codeNames[c] }

// Error is what this package returns, except for errors of contexts and those of package streamer
// about a single exchange. At is a byte offset, -1 when there is none. Remote: the peer reported
// it.
type Error struct {
	Code   Code
	At     int64
	Remote bool
	Err    error
	// Agreed is what was offered and what became of it, in an error NoHHFR of Dial; otherwise it is
	// nil.
	Agreed *Agreed
}

func (e *Error) Error() string {
	s := "negotiate: " + e.Code.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// AsMalformed returns an [Error] with the code Malformed and a cause.
func AsMalformed(err error) error { return &Error{Code: Malformed, At: -1, Err: err} }

// BadConfigf returns an [Error] with the code BadConfig and a formatted cause.
func BadConfigf(format string, args ...any) error {
	return &Error{Code: BadConfig, At: -1, Err: fmt.Errorf(format, args...)}
}
