package streamer

import (
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// Code tells the kinds of [Error] apart.
type Code uint8

// The codes of a message that was cancelled, as in section 7 of the wire format. With Remote, the
// peer said so. Only Unprocessed means that a request was not processed and is safe to send
// again.
const (
	Aborted     = Code(frame.Aborted)
	Busy        = Code(frame.Busy)
	Unprocessed = Code(frame.Unprocessed)
	TooLarge    = Code(frame.MessageTooLarge)
	Malformed   = Code(frame.Malformed)
	Unserved    = Code(frame.Unserved)
	Failed      = Code(frame.Failed)
)

const (
	// Closed: the stream is over, by Close, or because the connection ended.
	Closed Code = iota + 16
	// Unsent: nothing of the message was written, or the peer never took the session; it is
	// safe to send elsewhere.
	Unsent
	// FateUnknown: the request was written, at least in part, and no reply came, or it was lost on
	// this side. It may have been processed.
	FateUnknown
	// NoReply: an exchange takes no reply, or no further one.
	NoReply
	// BadConfig: Config does not hold together.
	BadConfig
)

// The codes of a stream that broke, as in section 8 of the wire format. With Remote, the peer
// said so.
const (
	Protocol       = closeBase + Code(frame.CloseProtocol)
	UnknownSession = closeBase + Code(frame.CloseUnknownSession)
	BeyondLimits   = closeBase + Code(frame.CloseLimits)
	Unsupported    = closeBase + Code(frame.CloseUnsupported)
	WrongCheck     = closeBase + Code(frame.CloseCheck)
	GoingAway      = closeBase + Code(frame.CloseGoingAway)
	Internal       = closeBase + Code(frame.CloseInternal)

	closeBase Code = 32
)

// told is the code of a message that the peer cancelled. Those that later versions may have mean
// that it failed: never that it was not processed, nor anything that only this end can say.
func told(c frame.CancelCode) Code {
	if c > frame.Failed {
		return Failed
	}
	return Code(c)
}

// closedBy is the code of a stream that the peer ended, in the same way.
func closedBy(c frame.CloseCode) Code {
	if c > frame.CloseInternal {
		return Internal
	}
	return closeBase + Code(c)
}

var codeNames = map[Code]string{Closed: "stream closed", Unsent: "not sent", FateUnknown: "fate unknown",
	NoReply:   "takes no reply",
	BadConfig: "bad configuration"}

// String is the name of the code: for cancelled messages and broken streams those of the wire
// format.
func (c Code) String() string {
	if n, ok := codeNames[c]; ok {
		return n
	}
	if c >= closeBase {
		return frame.CloseCode(c - closeBase).String()
	}
	return frame.CancelCode(c).String()
}

// Error is why a message, or a stream, did not go through. At is an offset in bytes in the
// direction that was wrong (received, unless Remote), 0 where that means nothing. Remote tells that
// the peer said so; Err then has its text. For a message that a broken stream took along, Err
// is the stream's Error.
type Error struct {
	Code   Code
	At     int64
	Remote bool
	Err    error

	unprocessed bool // the peer did not take the session
}

func (e *Error) Error() string {
	text := e.Code.String()
	if e.Remote {
		text = "peer says " + text
	}
	if e.At > 0 {
		text = fmt.Sprintf("%s at offset %d", text, e.At)
	}
	if e.Err != nil {
		text = fmt.Sprintf("%s: %v", text, e.Err)
	}
	return text
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap is the cause, nil where the code says it all.
func (e *Error) Unwrap() error { return e.Err }

// took is the error of a message that the end of a stream took along, whose error this is; nil: it
// ended in order. A session that the peer never took has processed nothing.
func (e *Error) took(code Code) *Error {
	if e == nil {
		return &Error{Code: code, Err: &Error{Code: Closed}}
	}
	if e.unprocessed {
		code = Unsent
	}
	return &Error{Code: code, Err: e}
}

// Refusal is what [Config.Accept] returns to have the initiator told why, by a close frame. Other
// errors of Accept are told as "internal", without their text.
type Refusal struct {
	CloseCode frame.CloseCode
	Text      string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.CloseCode, r.Text) }

// Is compares codes.
func (r *Refusal) Is(t error) bool { o, ok := t.(*Refusal); return ok && o.CloseCode == r.CloseCode }

// said is what the peer gave as text, if it gave one.
func said(text string) error {
	if text == "" {
		return nil
	}
	return fmt.Errorf("%q", text)
}

// broke makes the stream's error of a bad byte, or of a connection that failed, at an offset.
func broke(err error, at int64) *Error {
	var own *Error
	var f *frame.Error
	var w *wire.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &f) && f.Code == frame.Unsupported:
		return &Error{Code: Unsupported, At: f.At, Err: err}
	case errors.As(err, &f):
		return &Error{Code: Protocol, At: f.At, Err: err}
	case errors.As(err, &w):
		code := Protocol
		switch w.Code {
		case wire.WrongCheck:
			code = WrongCheck
		case wire.Limits:
			code = BeyondLimits
		default:
		}
		return &Error{Code: code, At: w.At, Err: err}
	}
	return &Error{Code: Closed, At: at, Err: err}
}

func unsent(err error) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	return &Error{Code: Unsent, Err: err}
}

func tooLong(limit int64) *Error {
	return &Error{Code: TooLarge, Err: fmt.Errorf("message above %d octets", limit)}
}

var errTooLong = errors.New("longer than the peer takes")
