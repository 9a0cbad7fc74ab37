package proxy

import (
	"errors"
	"log/slog"
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
type noSession struct{ agreed negotiate.Agreed }

func (e *noSession) Error() string { return e.agreed.Why }

var (
	// errNoPartner is why everything is plain with an upstream that speaks hhfr but is no proxy.
	errNoPartner = errors.New("the upstream speaks hhfr, but is no proxy")
	// errNever is the reason for a proxy that makes no offers.
	errNever = errors.New("no offers are made")
)

// quiet is how long no offer is made in any case: the upstream has answered one, and wants no
// stream.
func (c *Config) quiet(err error) time.Duration {
	var answered *noSession
	switch {
	case errors.As(err, &answered) && (answered.agreed.Remembered || answered.agreed.NoRoom()):
		return min(c.RememberFor, busyPause) // how much of the remembered time is left is unknown
	case answered != nil, errors.Is(err, errNoPartner):
		return c.RememberFor
	case schemeError(err) != nil:
		return min(otherScheme, c.RememberFor)
	}
	return 0
}

// teller logs how calls go, when that has changed.
type teller struct {
	log      *slog.Logger
	upstream string
	told     path
	partner  bool // there was a session before
}

func (t *teller) tell(l *link, err error) {
	before := t.told
	var answered *noSession
	blocked := errors.As(err, &answered) && answered.agreed.NoStream != ""
	switch {
	case l != nil:
		if t.told = pathStream; before == pathLost {
			t.log.Warn("a stream again: calls go over it", "upstream", t.upstream)
		}
		t.partner = true
	case before == pathLost:
	case schemeError(err) != nil:
		if t.told = pathWrong; before != pathWrong {
			t.log.Warn("upstream", "peer", t.upstream, "err", err)
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
			t.log.Warn("upstream", "peer", t.upstream, "err", err, "hint", hints[session.TroubleOf(err)])
		}
	case before != pathPlain:
		t.told = pathPlain
		t.log.Info("plain HTTP to the upstream, which has no partner for streams", "upstream", t.upstream, "why", err)
	}
}
