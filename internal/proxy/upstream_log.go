package proxy

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// path is how calls go to the upstream, as last logged.
type path uint8

const (
	pathUnknown path = iota
	pathStream
	// pathPlain: the upstream does not want a stream, as most servers do not.
	pathPlain
	// pathLost: there should be a stream, and there is none.
	pathLost
	// pathWrong: the upstream is of another scheme than its URL says, or a certificate is wrong.
	pathWrong
)

// noSession is why an upstream that answered has no session with us.
type noSession struct {
	agreed negotiate.Agreed
	again  bool          // it has not decided, and is asked again soon
	after  time.Duration // when it wants that; 0: it does not say
}

func (e *noSession) Error() string { return e.agreed.Why }

var (
	// errNoPartner is why everything is plain with an upstream that speaks hhfr but is no proxy.
	errNoPartner = errors.New("the upstream speaks hhfr, but is no proxy")
	// errNever is the reason for a proxy that makes no offers.
	errNever = errors.New("no offers are made")
)

// reach logs whether the upstream can be connected to, when that has changed.
type reach struct {
	log      *slog.Logger
	upstream string
	fails    atomic.Bool

	mu   sync.Mutex
	told string // the kind of failure that was logged last; empty: none since it worked
}

// failed logs why nothing can be forwarded, with the remedy if one is known.
func (r *reach) failed(err error) {
	trouble := session.TroubleOf(err)
	kind := trouble.String()
	var own *Error
	if errors.As(err, &own) {
		kind += own.Code.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	level := slog.LevelWarn
	if kind == r.told {
		level = slog.LevelDebug
	}
	r.told = kind
	r.fails.Store(true)
	args := []any{"upstream", r.upstream, "err", err}
	if hint := hints[trouble]; hint != "" {
		args = append(args, "hint", hint)
	}
	r.log.Log(context.Background(), level, "upstream", args...)
}

// worked notes that the upstream has sent something.
func (r *reach) worked() {
	if !r.fails.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails.Swap(false) {
		r.told = ""
		r.log.Warn("the upstream answers again", "upstream", r.upstream)
	}
}

// teller logs how calls go, when that has changed.
type teller struct {
	log      *slog.Logger
	upstream string
	nearOnly bool

	mu      sync.Mutex
	told    path
	partner bool // there was a session before
	waits   bool // it was logged that the attempt takes long
}

// waiting logs that an attempt takes long, while calls go without a stream: once until it ends.
func (t *teller) waiting(since time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waits || t.told == pathLost {
		return
	}
	t.waits = true
	t.log.Warn("plain HTTP: no stream yet; the attempt takes long", "upstream", t.upstream, "since",
		since.Round(100*time.Millisecond))
}

// tell logs the result of an attempt: opened, or why not.
func (t *teller) tell(opened bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waited := t.waits
	t.waits = false
	before := t.told
	var answered *noSession
	blocked := errors.As(err, &answered) && answered.agreed.NoStream != ""
	switch {
	case opened:
		if t.told = pathStream; before == pathLost || waited {
			t.log.Warn("a stream again: calls go over it", "upstream", t.upstream)
		}
		t.partner = true
	case before == pathLost:
	case schemeError(err) != nil:
		if t.told = pathWrong; before != pathWrong {
			t.log.Warn("upstream", "upstream", t.upstream, "err", err)
		}
	case blocked:
		t.told = pathLost
		t.log.Warn("plain HTTP: a stream was agreed on and cannot be opened",
			"upstream", t.upstream, "why", err, "hint", session.BlockedHint)
	case t.partner:
		t.told = pathLost
		t.log.Warn("plain HTTP: no stream to the partner any more; it is tried again",
			"upstream", t.upstream, "why", err)
	case session.TroubleOf(err) != 0:
		if t.told = pathWrong; before != pathWrong {
			t.log.Warn("upstream", "upstream", t.upstream, "err", err, "hint", hints[session.TroubleOf(err)])
		}
	case before != pathPlain:
		t.told = pathPlain
		level := slog.LevelInfo // most far proxies have a server for their upstream
		if t.nearOnly {
			level = slog.LevelWarn
		}
		text := "plain HTTP to the upstream, which has no partner for streams"
		if answered != nil && answered.again {
			text = "plain HTTP to the upstream, which has not said whether it has streams; it is asked again"
		}
		t.log.Log(context.Background(), level, text, "upstream", t.upstream, "why", err)
	}
}

// Why something went to the upstream without a stream, beside the reasons of reasonOf.
const (
	plainSilent = "silent"  // the client waits for the server to speak first
	plainLane   = "no_lane" // the stream has no lane to spare
	plainLost   = "lost"    // the stream ended before anything of the call was sent
	// Calls that go nowhere:
	plainRequired = "required" // they are to go over a stream, and there is none
	plainNoRoute  = "no_route" // no route takes them
	plainDraining = "draining" // the proxy ends
	// toward an upstream that wants WS-ReliableMessaging:
	plainInSequence = "in_sequence" // in a sequence of this proxy
	plainOwn        = "own"         // as it is, in a sequence of its client or in none
)

// reasonOf is why there is no stream, in a word for counters.
func reasonOf(err error) string {
	var answered *noSession
	switch {
	case errors.Is(err, errNever):
		return "no_offer"
	case errors.Is(err, ErrTrying):
		return "not_yet"
	case errors.Is(err, errNoPartner):
		return "no_proxy"
	case schemeError(err) != nil:
		return "wrong_scheme"
	case session.TroubleOf(err) != 0:
		return "certificate"
	case errors.As(err, &answered) && answered.agreed.NoStream != "":
		return "blocked"
	case errors.As(err, &answered) && answered.agreed.NoRoom():
		return "no_room"
	case answered != nil && len(answered.agreed.Refused) > 0:
		return "refused"
	case answered != nil:
		return "no_partner"
	case errors.Is(err, &negotiate.Error{Code: negotiate.Unreachable}):
		return "unreachable"
	}
	return "failed"
}

// schemeError is why no HTTP can be forwarded to an upstream of another scheme than its URL says;
// nil for other errors, for which plain forwarding is left.
func schemeError(err error) error {
	var wrong *session.SchemeError
	if errors.As(err, &wrong) {
		return &Error{Code: Unreachable, Err: wrong}
	}
	return nil
}
