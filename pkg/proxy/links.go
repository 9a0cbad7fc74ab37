package proxy

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// links keeps a session with the proxy behind the upstream, where there is one. Its offers go
// beside the calls: those that come while there is no session go plainly, and wait for nothing.
type links struct {
	p      *Proxy
	wanted chan struct{} // holds one when a call has found no session

	mu      sync.Mutex
	current *link
	why     error         // there is none
	trying  chan struct{} // closed when the attempt under way is over; nil: none is
	closed  bool
	told    path
	partner bool // there was a session before
}

// path is how calls go to the upstream, as far as the log has been told.
type path uint8

const (
	pathUnknown path = iota
	pathStream
	// pathPlain: the upstream does not want a stream, as most servers do not.
	pathPlain
	// pathLost: there should be a stream, and is none.
	pathLost
	// pathWrong: the upstream is of another scheme than its URL says.
	pathWrong
)

// noSession is why an upstream that answered has no session with us.
type noSession struct{ agreed negotiate.Agreed }

func (e *noSession) Error() string { return e.agreed.Why }

var (
	// errNoPartner is why all goes plain with an end that speaks hhfr but is no proxy.
	errNoPartner = errors.New("the upstream speaks hhfr, but is no proxy")
	// errTrying is why while an offer is under way, or is to be made soon.
	errTrying = errors.New("there is no stream yet")
	// errNever is why for a proxy that makes no offers.
	errNever = errors.New("no offers are made")
)

// get gives the live session; nil, and why, if calls go plainly. It does not wait.
func (ls *links) get() (*link, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.current != nil && ls.current.alive() {
		return ls.current, nil
	}
	select {
	case ls.wanted <- struct{}{}:
	default:
	}
	return nil, cmp.Or(ls.why, errTrying)
}

// linked waits for the attempt under way; nil: calls go over a stream.
func (ls *links) linked(ctx context.Context) error {
	for {
		ls.mu.Lock()
		alive, why, trying := ls.current != nil && ls.current.alive(), cmp.Or(ls.why, errTrying), ls.trying
		ls.mu.Unlock()
		switch {
		case alive:
			return nil
		case trying == nil:
			return why
		}
		select {
		case <-trying:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run makes offers until the proxy is closed: one at once, and others when a session has ended,
// when nobody was there, and when calls come after the time for which a plain upstream is
// remembered.
func (ls *links) run() {
	ctx, clock := ls.p.ctx, ls.p.cfg.Clock
	for backOff := firstBackOff; ctx.Err() == nil; backOff = min(2*backOff, maxBackOff) {
		l, err := ls.p.negotiate()
		ls.settle(l, err)
		if l != nil {
			began := clock.Now()
			l.wait(ctx)
			ls.p.wait.Go(func() { _ = l.session.Close() })
			if clock.Since(began) > maxBackOff || l.stream.Stats().Sent.Messages > 0 {
				backOff = firstBackOff // it was of use
			}
		}
		if clock.Sleep(ctx, ls.quiet(err)) == nil {
			ls.await(l, err, backOff)
		}
		ls.begin()
	}
	ls.settle(nil, &Error{Code: Closed, At: -1})
}

// quiet is for how long no offer is made in any case: the upstream has answered one, and wants no
// stream.
func (ls *links) quiet(err error) time.Duration {
	var answered *noSession
	switch {
	case errors.As(err, &answered) && (answered.agreed.Remembered || answered.agreed.NoRoom()):
		return min(ls.p.cfg.RememberFor, busyPause) // how much of the time remembered is left is not known
	case answered != nil, errors.Is(err, errNoPartner):
		return ls.p.cfg.RememberFor
	case schemeError(err) != nil:
		return min(otherScheme, ls.p.cfg.RememberFor)
	}
	return 0
}

// await waits for the next offer to be worth it: until a call wants it; where a partner may come
// back, no longer than backOff.
func (ls *links) await(l *link, err error, backOff time.Duration) {
	var again <-chan time.Time
	if l != nil || errors.Is(err, &negotiate.Error{Code: negotiate.Unreachable}) {
		timer := ls.p.cfg.Clock.NewTimer(backOff)
		defer timer.Stop()
		again = timer.C()
	}
	select {
	case <-ls.wanted: // maybe long ago
	default:
	}
	select {
	case <-ls.wanted:
	case <-again:
	case <-ls.p.ctx.Done():
	}
}

// begin notes that an attempt is under way, or comes at once.
func (ls *links) begin() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if schemeError(ls.why) == nil { // calls to one of another scheme would fail meanwhile
		ls.why = errTrying
	}
	if ls.trying == nil {
		ls.trying = make(chan struct{})
	}
}

// settle takes what came of an attempt.
func (ls *links) settle(l *link, err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed && l != nil {
		late := l.session
		ls.p.wait.Go(func() { _ = late.Close() })
		l, err = nil, &Error{Code: Closed, At: -1}
	}
	ls.current, ls.why = l, err
	close(ls.trying)
	ls.trying = nil
	if ls.p.ctx.Err() == nil {
		ls.tell(l, err)
	}
}

// tell logs how calls go from now on, if that has changed.
func (ls *links) tell(l *link, err error) {
	cfg, upstream, before := &ls.p.cfg, ls.p.cfg.Upstream.Host, ls.told
	var answered *noSession
	blocked := errors.As(err, &answered) && answered.agreed.NoStream != ""
	switch {
	case l != nil:
		if ls.told = pathStream; before == pathLost {
			cfg.Log.Warn("a stream again: calls go over it", "upstream", upstream)
		}
		ls.partner = true
	case before == pathLost:
	case schemeError(err) != nil:
		if ls.told = pathWrong; before != pathWrong {
			cfg.Log.Warn("upstream", "peer", upstream, "err", err)
		}
	case blocked:
		ls.told = pathLost
		cfg.Log.Warn("plain HTTP: a stream was agreed on and cannot be opened",
			"upstream", upstream, "why", err, "hint", negotiate.BlockedHint)
	case ls.partner:
		ls.told = pathLost
		cfg.Log.Warn("plain HTTP: no stream to the partner any more; it is tried again",
			"upstream", upstream, "why", err)
	case before != pathPlain:
		ls.told = pathPlain
		cfg.Log.Info("plain HTTP to the upstream, which has no partner for streams", "upstream", upstream, "why", err)
	}
}

// close ends the session; no other is opened.
func (ls *links) close() {
	ls.mu.Lock()
	ls.closed = true
	l := ls.current
	ls.mu.Unlock()
	if l != nil {
		_ = l.session.Close()
	}
}
