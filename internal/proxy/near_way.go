package proxy

import (
	"errors"
	"time"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// nearWay is the near half toward one upstream: it keeps a stream with the partner there, and
// knows whose memory the connections of clients use.
type nearWay struct {
	*plainWay
	transports map[string]streamer.Transport
	links      Keeper[*link]
	unanswered uint // how often a question was not answered; of quiet
	teller     teller
	principals principals
}

func newNearWay(plain *plainWay, transports map[string]streamer.Transport) *nearWay {
	cfg := &plain.p.cfg
	u := &nearWay{plainWay: plain, transports: transports, principals: newPrincipals(plain.cfg.Clients)}
	u.links = Keeper[*link]{
		Open: u.negotiate, Quiet: u.quiet, FirstBackOff: firstBackOff, MaxBackOff: maxBackOff, Clock: cfg.Clock,
		Told: u.told,
	}
	u.teller = teller{log: cfg.Log, upstream: plain.cfg.Name, nearOnly: cfg.NearOnly}
	u.links.Init(errNever)
	return u
}

// begin makes offers from now on.
func (u *nearWay) begin() {
	u.links.Begin()
	u.p.wait.Go(func() { u.links.Run(u.ctx) })
}

// told notes the result of an attempt to open a stream.
func (u *nearWay) told(l *link, err error) {
	u.teller.tell(l != nil, err)
	if l != nil {
		u.alone.met()
		u.near.Opened(l.stream, u.p.cfg.Clock.Now())
	} else {
		u.near.Failed(reasonOf(err), err.Error(), u.p.cfg.Clock.Now())
	}
}

// quiet is how long no offer is made in any case: the upstream has answered one, and wants no
// stream, or none now. returns: it may have one after that time, also if no call asks for it.
func (u *nearWay) quiet(err error) (pause time.Duration, returns bool) {
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
