package session

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// current returns the stream to use now; nil means plain SOAP. While a broken stream is being
// replaced it waits.
func (s *Session) current(ctx context.Context) (*sessionStream, error) {
	for {
		s.mu.Lock()
		l, again, plain, closed, why := s.link, s.again, s.plain, s.closed, s.agreed.Why
		s.mu.Unlock()
		switch {
		case closed:
			return nil, &negotiate.Error{Code: negotiate.Closed, At: -1}
		case plain && s.cfg.RequireHHFR:
			return nil, &negotiate.Error{Code: negotiate.NoHHFR, At: -1, Err: errors.New(why)}
		case plain:
			return nil, nil
		case again != nil:
			select {
			case <-again:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			continue
		case l == nil:
			return nil, nil
		}
		if !l.stream.Over() {
			return l, nil
		}
		s.lost(l)
	}
}

// streaming reports whether messages go over a stream now, or wait for the next one.
func (s *Session) streaming() bool {
	s.mu.Lock()
	l, plain := s.link, s.plain
	s.mu.Unlock()
	if plain || l == nil {
		return false
	}
	if l.stream.Over() {
		s.lost(l)
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.plain
	}
	return true
}

// begin takes the first stream of the session, and logs it.
func (s *Session) begin(n *negotiation) {
	f := n.agreed.Facts
	s.cfg.Log.Info("stream", "url", loggable(n.url), "mode", string(n.agreed.Mode), "session", f.Session.String(),
		"representation", f.Representation, "transport", f.Transport)
	s.install(n)
}

// install makes a negotiated stream the current one.
func (s *Session) install(n *negotiation) {
	l := &sessionStream{stream: n.stream, lane: n.stream.Lane(0), path: n.agreed.Facts.Path, node: n.url,
		confirm: n.confirmed, declared: n.agreed.Mode == negotiate.Declared, onePath: n.onePath}
	s.adopt(n)
	n.headers.begin(s, l)
	l.used.coder, l.used.known = n.coder, n.agreed.Facts.PeerShapes
	s.mu.Lock()
	s.before = slices.DeleteFunc(s.before, func(l *sessionStream) bool { return l.stream.Over() })
	known := s.link != nil && s.link.stream == n.stream
	if s.link != nil && !known {
		s.before = append(s.before, s.link)
	} else {
		n.agreed.Tried = slices.Concat(s.agreed.Tried, n.agreed.Tried)
	}
	if !known {
		s.link, s.agreed, s.fresh = l, n.agreed, false
	}
	done, closed := s.again, s.closed
	s.again = nil
	if !closed && !known && (s.cfg.Reconnect > 0 || s.outbox != nil) {
		s.wait.Go(func() {
			select {
			case <-l.stream.Done():
				s.lost(l)
			case <-s.ctx.Done():
			}
		})
	}
	if !closed && !known && s.asker != nil {
		s.wait.Go(func() { s.watchMet(l, n) })
	}
	s.mu.Unlock()
	s.tell()
	if done != nil {
		close(done)
	}
	if closed {
		_ = l.stream.Close()
	}
}

// negotiation starts an attempt to get a stream.
func (s *Session) negotiation() *negotiation {
	return &negotiation{
		dialer: s.dialer,
		url:    s.target(),
		serve:  s.serve,
		outbox: s.outbox,
		taken:  &s.taken,
		client: s.client,
		asker:  s.asker,

		undeclared: s.isUndeclared(),
	}
}

// isUndeclared reports whether what the description declares has led nowhere.
func (s *Session) isUndeclared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.undeclared
}

// isMet reports whether the hello of a stream's peer has come.
func isMet(s *streamer.Stream) bool {
	select {
	case <-s.Met():
		return true
	default:
		return false
	}
}

// recordProgress records that a stream carried a message.
func (s *Session) recordProgress(l *sessionStream) {
	if s.failedStreams.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == l {
		s.failedStreams.Store(0)
	}
}

// over records that a stream has ended, if it has.
func (s *Session) over(l *sessionStream) {
	if l.stream.Over() {
		s.lost(l)
	}
}

// lost records that a stream takes no more messages: it is replaced, or plain SOAP comes next.
func (s *Session) lost(l *sessionStream) {
	err := l.stream.Err()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != l || s.plain || s.again != nil || s.closed {
		return
	}
	s.leaveLocked(l.node)
	s.agreed.Why = "the stream ended"
	if err != nil {
		s.agreed.Why += ": " + err.Error()
	}
	tooMuch := false // what is sent is beyond a limit, and would be again
	if s.outbox != nil {
		st := s.outbox.sequence().Status()
		if progress := int64(st.Done+st.Received) - st.GivenUp; progress > s.progress {
			s.progress = progress
			s.failedStreams.Store(0)
		} else {
			tooMuch = isMet(l.stream) && errors.Is(err, &streamer.Error{Code: streamer.BeyondLimits})
		}
	}
	if s.asker != nil && s.outbox == nil && !isMet(l.stream) {
		s.cfg.Log.Info("session not joined again", "url", loggable(s.url), "err", err)
		s.unmet()
		s.undeclared = s.undeclared || l.declared
		s.link = nil
		if !s.cfg.RequireHHFR && (s.cfg.Reconnect == 0 || isRefused(err)) {
			s.fresh = true // what was remembered is no longer valid: the next call asks
			return
		}
		s.again = make(chan struct{})
		s.wait.Go(func() { s.reconnect(true) })
		return
	}
	s.met = true
	failed := s.failedStreams.Add(1)
	if failed <= maxFailedStreams && l.onePath && s.outbox == nil && s.cfg.Reconnect > 0 {
		s.link, s.fresh = nil, true // only a call gets a stream there: the next one asks
		s.wait.Go(func() { s.keepUsed(l) })
		return
	}
	unconnected := dialError(err) != nil // what was remembered of the peer led nowhere: there are other ways
	if (s.cfg.Reconnect > 0 || unconnected) && failed <= maxFailedStreams && !tooMuch {
		s.again = make(chan struct{})
		s.wait.Go(func() { s.reconnect(s.outbox == nil || unconnected) }) // what is in a sequence has no unknown fate
		return
	}
	s.plain = true
	if s.outbox != nil {
		s.wait.Go(s.outbox.sequence().Close)
		return
	}
	why := errors.New(s.agreed.Why)
	s.wait.Go(func() {
		s.cfg.Log.Warn("plain SOAP from now on", "url", loggable(s.url), "why", why)
		s.tell()
		if err != nil && !errors.Is(err, &streamer.Error{Code: streamer.GoingAway}) {
			s.rememberBroken(why)
		}
	})
}

// unmet undoes what was agreed for a stream that the peer never accepted. s.mu is locked.
func (s *Session) unmet() {
	tried := slices.Clone(s.agreed.Tried)
	if len(tried) > 0 {
		tried[len(tried)-1].Why = s.agreed.Why
	}
	if s.met {
		s.agreed.Tried = tried // it had a stream before
		return
	}
	s.agreed = negotiate.Agreed{Why: s.agreed.Why, Tried: tried}
}

// isRefused reports whether a stream ended before the peer's hello because a server answered: with
// a refusal, or with something that is no stream.
func isRefused(err error) bool {
	var e *streamer.Error
	return errors.As(err, &e) && (e.Remote || e.Code == streamer.Protocol)
}

// rememberBroken makes later sessions speak plain SOAP for a while: a stream that broke for good
// would break again.
func (s *Session) rememberBroken(why error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
	defer cancel()
	s.dialer.remember(ctx, s.url, why)
}

// retry negotiates with one node after another, at growing intervals, until there is a stream, none
// that agrees, or no time left.
func (s *Session) retry(ctx context.Context, careful bool) (n *negotiation, err error) {
	clock := s.cfg.Clock
	until := clock.Now().Add(s.cfg.Reconnect)
	wait := firstBackOff
	if len(s.nodes) > 1 {
		wait = groupBackOff
	}
	for tries, refusals := 1, 0; ; tries++ {
		n = s.negotiation()
		n.careful = careful
		if err = n.find(ctx, true); err == nil || ctx.Err() != nil {
			return n, err
		}
		if refusals++; s.passes(err) {
			refusals = 0
		}
		s.leave(n.url)
		if refusals < len(s.nodes) && tries%len(s.nodes) != 0 {
			continue
		}
		// Part of the wait is random, so that the clients of one server do not come back all at
		// once.
		pause := wait/2 + rand.N(wait/2)
		if refusals == len(s.nodes) || clock.Now().Add(pause).After(until) {
			return n, err
		}
		level := slog.LevelInfo
		if tries <= len(s.nodes) && s.opens() {
			level = slog.LevelWarn // who waits for the first stream may have named the wrong peer
		}
		s.cfg.Log.Log(ctx, level, "no stream yet", "url", loggable(n.url), "err", err)
		if clock.Sleep(ctx, pause) != nil {
			return n, err
		}
		wait = min(2*wait, maxBackOff)
	}
}

// opens reports whether the session has a sequence that no peer has taken yet.
func (s *Session) opens() bool { return s.outbox != nil && !s.outbox.joined() }

// passes reports whether an attempt to get a stream may succeed later. A peer that was there before
// may be back after anything but its own refusal; one that was not, where nobody or only half an
// answer came.
func (s *Session) passes(err error) bool {
	var refused *refusal
	var wrong *SchemeError
	var name *net.DNSError
	switch {
	case errors.Is(err, errAgreedPlain):
		return false
	case errors.As(err, &refused):
		return refused.passing && (!refused.portal || !s.opens())
	case !s.opens():
		return true
	}
	unknown := errors.As(err, &name) && name.IsNotFound
	return isUnreachable(err) && !unknown && !errors.As(err, &wrong) && TroubleOf(err) == 0
}

// reconnect continues the session over another stream, or turns it to plain SOAP.
func (s *Session) reconnect(careful bool) {
	s.mu.Lock()
	broken := s.link
	s.mu.Unlock()
	if broken != nil {
		s.keepUsed(broken)
	}
	n, err := s.retry(s.ctx, careful)
	if err == nil {
		s.install(n)
		s.cfg.Log.Info("a stream again", "url", loggable(n.url), "session", n.agreed.Facts.Session.String())
		return
	}
	s.adopt(n)
	s.mu.Lock()
	if s.again == nil { // a call that was in flight has opened a stream
		s.mu.Unlock()
		return
	}
	s.plain = true
	s.agreed.Why += "; " + err.Error()
	s.agreed.Answer, s.agreed.Refused = n.agreed.Answer, n.agreed.Refused
	var refused *refusal
	s.portal = errors.As(err, &refused) && refused.portal
	portal := s.portal
	why, done := s.agreed.Why, s.again
	s.again = nil
	s.mu.Unlock()
	if s.outbox != nil {
		s.outbox.close()
	} else if s.ctx.Err() == nil {
		s.cfg.Log.Warn("plain SOAP from now on", "url", loggable(s.url), "why", why)
		s.tell()
		if !n.agreed.NoRoom() && !portal && !errors.Is(err, errAgreedPlain) {
			s.rememberBroken(errors.New(why))
		}
	}
	close(done)
}

const (
	// maxFailedStreams is how many streams in a row may end without progress before no further one
	// is tried: a peer that breaks each of them would else be asked forever.
	maxFailedStreams = 5
	// firstBackOff is the pause after the first failed attempt, maxBackOff the longest one. A
	// server that restarts takes a second or more, and a link that is down is not loaded by asking.
	firstBackOff = 200 * time.Millisecond
	maxBackOff   = 5 * time.Second
)
