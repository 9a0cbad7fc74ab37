package responder

import (
	"errors"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// refusedSession is the refusal for any fault in a session or token. It does not say which was
// wrong.
func refusedSession() error {
	return &streamer.Refusal{CloseCode: streamer.CloseUnknownSession, Text: "session or token not accepted"}
}

// internalRefusal is the refusal for trouble with the store; an error that is a refusal stays.
func internalRefusal(what string, err error) error {
	var own *streamer.Refusal
	if errors.As(err, &own) {
		return own
	}
	return &streamer.Refusal{CloseCode: streamer.CloseInternal, Text: what + ": " + ctxstore.Reason(err)}
}

// busy refuses a peer for which there is no slot.
func busy() error {
	return &streamer.Refusal{CloseCode: streamer.CloseLimits, Text: negotiate.Busy[0].Why}
}

// These refusals may pass.
var (
	errNoRoom = errors.New("too many sessions")
	errNoConn = errors.New("too many connections")
)
