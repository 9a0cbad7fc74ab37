package hhfr

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Code is the kind of an [Error].
type Code uint8

const (
	// Invalid: a URL, Config or Request that cannot work. Nothing was sent.
	Invalid Code = iota + 1
	// Malformed: an input of [Decode] that is no capture, or is broken; content that a [Binding]
	// cannot read, or a reply that is neither the result of an [Operation] nor a fault.
	Malformed
	// Unreachable: there is no connection to the peer. Nothing was sent.
	Unreachable
	// Unsent: the request was not sent: the context or the client ended before, the body could not
	// be read, or a stream broke and the body cannot be read again.
	Unsent
	// FateUnknown: the request was sent, at least in part, and there is no whole reply. It may have
	// been processed, and is never sent again automatically. A body that breaks off while it is
	// read is this error, too: a reply's for the client, a request's for the service.
	FateUnknown
	// Refused: the peer does not accept the message.
	Refused
	// TooLarge: the message, or the reply of [Reply.ReadAll], is longer than this side or the peer
	// accepts.
	TooLarge
	// NoHHFR: the peer does not agree to what a guarantee or order needs, and plain SOAP cannot
	// provide it. Nothing was sent.
	NoHHFR
	// Kept: the message is pending in Config.Store and not known to be committed. The next client
	// with the same store and URL sends it.
	Kept
	// Unfinished: requests were in progress when the context of a Shutdown was done.
	Unfinished
	// Faulted: the service answered an [Operation] by a SOAP fault, which is the cause: a
	// *[soap.Fault].
	Faulted
)

var codeNames = map[Code]string{
	Invalid: "invalid", Malformed: "malformed", Unreachable: "no connection", Unsent: "not sent",
	FateUnknown: "fate unknown", Refused: "refused", TooLarge: "too large", NoHHFR: "no hhfr",
	Kept: "pending in the store, not known to be committed", Unfinished: "requests in progress",
	Faulted: "fault",
}

// String returns the code in words.
func (c Code) String() string { return codeNames[c] }

// Error is what the functions and methods of this package return: the same Code and Sent for the
// same event, over each path. It wraps the cause, for [errors.Is] and [errors.As]:
// [context.DeadlineExceeded] for a deadline, [net.ErrClosed] for a client that was closed.
type Error struct {
	Code Code
	// Remote: the peer reported it.
	Remote bool
	// Sent reports whether the message may have been processed, or still may be. A message that was
	// not Sent can be sent again without processing it twice.
	Sent bool
	// Err is the cause; nil where the code says it all.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	s := "hhfr: " + e.Code.String()
	if e.Err != nil {
		s += ": " + e.reason()
	}
	return s
}

// reason is the text of the cause without what the code says already: packages below begin theirs
// with the same words.
func (e *Error) reason() string {
	text := e.Err.Error()
	for {
		shorter := strings.TrimPrefix(text, "negotiate: ")
		if first, rest, found := strings.Cut(shorter, ": "); found && strings.EqualFold(first, e.Code.String()) {
			shorter = rest
		}
		if shorter == text {
			return text
		}
		text = shorter
	}
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// errNoContext is for a nil context, as with [net/http.NewRequestWithContext].
var errNoContext = invalid(errors.New("no context"))

func invalid(err error) error { return &Error{Code: Invalid, Err: err} }

// fault converts an error of the packages below into one of this package. An error of unknown type
// concerns a message of which nothing was sent: a body that cannot be read, a store that fails.
func fault(err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	var session *negotiate.Error
	var stream *streamer.Error
	switch {
	case errors.As(err, &own):
		return err
	case errors.Is(err, &streamer.Error{Code: streamer.TooLarge}):
		errors.As(err, &stream)
		unsent := errors.Is(err, &negotiate.Error{Code: negotiate.Unsent})
		return &Error{Code: TooLarge, Remote: stream.Remote, Sent: !unsent, Err: err}
	case errors.As(err, &session):
		return ofSession(session, err)
	case errors.As(err, &stream):
		return ofExchange(stream, err)
	}
	return &Error{Code: Unsent, Err: err}
}

// ofSession is fault for an error of package negotiate.
func ofSession(e *negotiate.Error, err error) error {
	switch e.Code {
	case negotiate.Unreachable:
		return &Error{Code: Unreachable, Err: err}
	case negotiate.FateUnknown:
		return &Error{Code: FateUnknown, Sent: true, Err: err}
	case negotiate.Refused:
		return &Error{Code: Refused, Remote: true, Sent: true, Err: err}
	case negotiate.NoHHFR:
		return &Error{Code: NoHHFR, Remote: e.Remote, Err: err}
	case negotiate.Kept:
		return &Error{Code: Kept, Sent: true, Err: err}
	case negotiate.Closed:
		return &Error{Code: Unsent, Err: net.ErrClosed}
	case negotiate.Malformed:
		if e.Remote { // a reply that cannot be read is none
			return &Error{Code: FateUnknown, Remote: true, Sent: true, Err: err}
		}
		return invalid(err)
	case negotiate.BadConfig, negotiate.Accepted, negotiate.OtherRun, negotiate.OldStore:
		return invalid(err)
	case negotiate.Unsent:
	}
	return &Error{Code: Unsent, Err: err}
}

// ofExchange is fault for an error of package streamer: the outcome of one exchange of a stream.
func ofExchange(e *streamer.Error, err error) error {
	switch e.Code {
	case streamer.Unprocessed:
		return &Error{Code: Refused, Remote: e.Remote, Err: err}
	case streamer.Busy, streamer.Malformed, streamer.Unserved:
		return &Error{Code: Refused, Remote: e.Remote, Sent: true, Err: err}
	case streamer.Unsent:
		return &Error{Code: Unsent, Err: err}
	case streamer.BadConfig:
		return invalid(err)
	default: // a service that failed, a caller that gave up, a stream that broke: there is no whole reply
		return &Error{Code: FateUnknown, Remote: e.Remote, Sent: true, Err: err}
	}
}

// unanswered is fault for an error of net/http. Nothing was sent if there was no connection.
func unanswered(ctx context.Context, err error, connected bool) error {
	var own *Error
	var session *negotiate.Error
	var stream *streamer.Error
	switch {
	case err == nil, errors.As(err, &own), errors.As(err, &session), errors.As(err, &stream):
		return fault(err)
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		err = errors.Join(context.Cause(ctx), err)
	}
	switch {
	case connected:
		return &Error{Code: FateUnknown, Sent: true, Err: err}
	case ctx.Err() != nil:
		return &Error{Code: Unsent, Err: err}
	}
	return &Error{Code: Unreachable, Err: err}
}
