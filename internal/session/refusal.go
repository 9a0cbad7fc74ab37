package session

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// refusal is a reason for plain SOAP that the peer gave, and that is remembered.
type refusal struct {
	err        error
	remembered bool
	passing    bool // it may pass
	portal     bool // it may come from somebody else than the peer, and is passing: it is not remembered
	notAsked   bool // no peer was asked
	unsent     bool // there was no connection to send anything on
	silent     bool // and nobody answered in the time for that
	undecided  bool // the connection ended before an answer, or that is status 503
	// after is how long such an answer asks to wait; 0: it does not say.
	after   time.Duration
	blocked string // the address of the stream that could not be opened
}

// MayPass reports whether [Dialer.Dial] failed for a reason that may pass: the same can be tried
// again.
func MayPass(err error) bool { return refusalOf(err).passing }

// AskAgain reports whether [Dialer.Dial] failed because the peer has not decided: the connection
// ended before an answer, or that has status 503. after is how long the answer asks to wait
// (Retry-After); 0: it does not say.
func AskAgain(err error) (again bool, after time.Duration) {
	refused := refusalOf(err)
	return refused.undecided, refused.after
}

// BlockedHint is the advice where [negotiate.Agreed].NoStream is set.
const BlockedHint = "open that port on the path, or let the peer accept streams on an open port (--listen, --tcp)"

// blockedWarning is the log line for it where no caller is told.
const blockedWarning = "plain SOAP: a stream was agreed on and cannot be opened"

// noStream returns the refusal for a stream that was agreed on and could not be opened.
func noStream(addr string, err error) *refusal {
	return &refusal{err: fmt.Errorf("no stream to %s (%w)", addr, cause(err)), passing: true, blocked: addr}
}

// cause returns an error of the network without its address, for texts that name the address
// already.
func cause(err error) error {
	var system *os.SyscallError
	var op *net.OpError
	switch {
	case errors.As(err, &system):
		return system.Err
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

// mayPass reports whether the peer may agree soon: it was not reached, had trouble, or somebody
// else answered. A stream that could not be opened is hardly open soon.
func (r *refusal) mayPass() bool { return r.portal || r.passing && r.blocked == "" }

func (r *refusal) Error() string { return r.err.Error() }

func (r *refusal) Unwrap() error { return r.err }

func isUnreachable(err error) bool {
	return errors.Is(err, &negotiate.Error{Code: negotiate.Unreachable})
}

// withoutURL removes the URL, whose query may be secret, from an error of an HTTP client: the error
// is logged and stored.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// dialError is that of a connection that was dialed early, if a stream ended by it; else nil.
func dialError(err error) *net.OpError {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return op
	}
	return nil
}

// isNobody reports whether nobody listens where a connection was dialed early: nobody has spent the
// token.
func isNobody(err error) bool {
	op := dialError(err)
	return op != nil && !op.Timeout()
}

// isFull reports whether a peer had no slot for a stream, before the peer accepted it: then it has
// not used up the token.
func isFull(err error) bool {
	var e *streamer.Error
	return errors.As(err, &e) && e.Remote && e.Code == streamer.BeyondLimits
}

// errAgreedPlain is why a session has no stream although its peer agreed.
var errAgreedPlain = errors.New("agreed on, with references to the common context store")

// errNotAsked means that no call has asked for a stream yet; the first one will.
var errNotAsked = errors.New("no call has asked for a stream yet")

// coded returns an error of a session, with its cause.
func coded(code negotiate.Code, cause error) error {
	return &negotiate.Error{Code: code, At: -1, Err: cause}
}

// refusalOf returns the refusal that caused an error; one of nothing if none did.
func refusalOf(err error) *refusal {
	var r *refusal
	if !errors.As(err, &r) {
		return &refusal{}
	}
	return r
}

// streamFailed reports whether an error is one of streams, with a code.
func streamFailed(err error, code streamer.Code) bool {
	return errors.Is(err, &streamer.Error{Code: code})
}
