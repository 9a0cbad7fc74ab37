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

// quiet is how long no offer is made in any case: the upstream has answered one, and wants no
// stream, or none now. returns: it may have one after that time, also if no call asks for it.
func (u *upstream) quiet(err error) (pause time.Duration, returns bool) {
	var answered *noSession
	isAnswered := errors.As(err, &answered)
	if !isAnswered || !answered.again || answered.after > 0 {
		u.unanswered = 0
	}
	switch {
	case isAnswered && answered.after > 0:
		return min(max(answered.after, firstAgain), u.cfg.RememberFor), true
	case isAnswered && answered.again:
		pause = min(firstAgain<<u.unanswered, u.cfg.RememberFor)
		if pause < u.cfg.RememberFor {
			u.unanswered++
		}
		return pause, false
	case isAnswered && (answered.agreed.Remembered || answered.agreed.NoRoom()):
		return min(u.cfg.RememberFor, busyPause), false // how much of the remembered time is left is unknown
	case isAnswered, errors.Is(err, errNoPartner):
		return u.cfg.RememberFor, false
	case schemeError(err) != nil:
		return min(otherScheme, u.cfg.RememberFor), false
	}
	return 0, errors.Is(err, &negotiate.Error{Code: negotiate.Unreachable})
}

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

// tell logs the result of an attempt.
func (t *teller) tell(l *link, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waited := t.waits
	t.waits = false
	before := t.told
	var answered *noSession
	blocked := errors.As(err, &answered) && answered.agreed.NoStream != ""
	switch {
	case l != nil:
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
