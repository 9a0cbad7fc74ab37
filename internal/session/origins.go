package session

import (
	"container/list"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/hhfr/hhfr/internal/session/machine"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// urlOrigin is an origin as a URL has it.
type urlOrigin struct{ scheme, host string }

// originSession is the state of one origin.
type originSession struct {
	origin  string
	names   []urlOrigin   // of it, as in RoundTripper.names
	done    chan struct{} // closed when session and err are set
	session *Session
	err     error
	until   time.Time     // when an origin that did not agree is asked again
	named   bool          // named by a request that was made for it; else a redirection led there
	after   chan struct{} // closed when the session may have its sequence; nil: at once

	inUse int           // requests that use it, and its negotiation
	since time.Time     // when that became 0
	place *list.Element // in RoundTripper.used; nil: no use has ended
}

const (
	// maxNames is how many spellings of one origin are remembered: hosts differ in case, and the
	// usual port may be left out.
	maxNames = 8
	// maxFallen is of how many origins it is known that the log has their fall-back. Beyond it the
	// log may have one twice.
	maxFallen = 1000
)

// originLocked returns the origin of a URL, see [negotiate.Origin], and whether that was in names.
func (t *RoundTripper) originLocked(u *url.URL) (origin string, known bool) {
	origin, known = t.names[urlOrigin{u.Scheme, u.Host}]
	if !known {
		origin = negotiate.Origin(u)
	}
	return origin, known
}

// useStreaming returns what has a stream for requests to a URL now, and is in use from here on;
// nil: there is none.
func (t *RoundTripper) useStreaming(u *url.URL) *originSession {
	now := t.dialer.cfg.Clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	origin, _ := t.originLocked(u)
	o := t.origins[origin]
	if t.closed || o == nil || !o.settled() || o.isOver(now, t.keep()) ||
		o.session == nil || o.session.isFresh() || !o.session.streaming() {
		return nil
	}
	t.useLocked(o)
	return o
}

// use returns the state of the origin of a request, which is in use from here on. first: the
// negotiation begins with this request, and is done concurrently with it.
func (t *RoundTripper) use(req *http.Request) (o *originSession, first bool, err error) {
	named, now := !IsElsewhere(req), t.dialer.cfg.Clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, false, coded(negotiate.Closed, nil)
	}
	origin, known := t.originLocked(req.URL)
	o = t.origins[origin]
	if o == nil || o.isOver(now, t.keep()) || named && o.isBare() {
		fresh := &originSession{origin: origin, done: make(chan struct{}), named: named, inUse: 1}
		if o != nil {
			fresh.names = o.names
			t.endLocked(o)
		}
		fresh.after = t.ending[origin]
		t.origins[origin] = fresh
		t.wait.Go(func() { t.dial(fresh, req.URL) })
		o, first = fresh, true
	}
	if !known && len(o.names) < maxNames {
		as := urlOrigin{req.URL.Scheme, req.URL.Host}
		t.names[as] = origin
		o.names = append(o.names, as)
	}
	t.useLocked(o)
	return o, first, nil
}

// session returns the session of a request's origin, which is in use from here on; a nil one for
// plain SOAP.
func (t *RoundTripper) session(req *http.Request) (*originSession, *Session, error) {
	o, first, err := t.use(req)
	if err != nil {
		return nil, nil, err
	}
	// With other modes than Explicit the first request waits only for a connection, which it needs
	// itself.
	waits := t.dialer.cfg.RequireHHFR || first && t.dialer.cfg.Mode != negotiate.Explicit
	if !o.settled() && !waits {
		return o, nil, nil
	}
	select {
	case <-o.done:
		err = o.err
	case <-req.Context().Done():
		err = context.Cause(req.Context())
	}
	if err != nil {
		t.release(o)
		return nil, nil, err
	}
	return o, o.session, nil
}

func (o *originSession) settled() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// isOver reports whether it is time to ask an origin again that does not agree, or whose session
// turned to plain SOAP.
func (o *originSession) isOver(now time.Time, keep time.Duration) bool {
	if !o.settled() {
		return false
	}
	if o.until.IsZero() && o.session != nil && !o.session.streaming() && !o.session.isFresh() {
		o.until = now.Add(o.session.askAgain(keep))
	}
	return !o.until.IsZero() && now.After(o.until)
}

// isBare reports whether an origin that does not agree was asked only without Config.OfferFields.
func (o *originSession) isBare() bool {
	return !o.named && o.settled() && (o.session == nil || !o.session.streaming() && !o.session.isFresh())
}

// keep returns how long an origin is not asked again.
func (t *RoundTripper) keep() time.Duration {
	if t.dialer.cfg.RememberFor < 0 {
		return DefaultRememberFor
	}
	return t.dialer.cfg.RememberFor
}

// askAgain returns when a session that speaks plain SOAP is worth another offer. It is after keep,
// but sooner if the peer only had no space, or may not have been the one that answered.
func (s *Session) askAgain(keep time.Duration) time.Duration {
	s.mu.Lock()
	soon := s.machine.Portal() || s.agreed.NoRoom()
	s.mu.Unlock()
	if soon {
		return min(keep, machine.MaxPause)
	}
	return keep
}

// dial negotiates with an origin. It is bounded by the dialer's timeout, not by the request that
// came first.
func (t *RoundTripper) dial(o *originSession, u *url.URL) {
	defer t.release(o)
	defer close(o.done)
	bare := *u
	// The query and the user belong to this request, and go with its own head.
	bare.RawQuery, bare.User = "", nil
	dialer := t.dialer
	if !o.named {
		dialer = t.elsewhere
	}
	if o.after != nil {
		<-o.after // Close waits for it anyway
	}
	session, err := dialer.Dial(t.ctx, bare.String())
	now := t.dialer.cfg.Clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		if session != nil {
			t.wait.Go(func() { _ = session.Close() })
		}
		o.err = coded(negotiate.Closed, nil)
	case isUnreachable(err) && !t.dialer.cfg.RequireHHFR:
		// The request itself finds out, and so does the next one.
		o.until = time.Unix(0, 1)
	case err != nil:
		o.err, o.until = err, time.Unix(0, 1)
		if refused := refusalOf(err); refused.err != nil && !refused.mayPass() {
			o.until = now.Add(t.keep())
		}
	default:
		o.session = session
		t.tellLocked(o, u)
		if !session.Agreed().HHFR && !session.isFresh() {
			o.until = now.Add(session.askAgain(t.keep()))
		}
	}
}

// tellLocked logs, once, a fall-back that no caller is told of, and the stream that follows it.
func (t *RoundTripper) tellLocked(o *originSession, u *url.URL) {
	agreed, cfg, fallen := o.session.Agreed(), &t.dialer.cfg, t.fallen[o.origin]
	switch {
	case agreed.HHFR && fallen:
		delete(t.fallen, o.origin)
		cfg.Log.Warn("a stream again", "url", loggable(u), "session", agreed.Facts.Session.String())
	case agreed.NoStream != "" && !fallen:
		t.fellLocked(o)
		cfg.Log.Warn(blockedWarning, "url", loggable(u), "why", agreed.Why, "hint", BlockedHint)
	}
}

// fellLocked records that the log has the fall-back of an origin.
func (t *RoundTripper) fellLocked(o *originSession) {
	for other := range t.fallen {
		if len(t.fallen) < maxFallen {
			break
		}
		delete(t.fallen, other)
	}
	t.fallen[o.origin] = true
}
