package session

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/hhfr/hhfr/internal/upgrade"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// claim reports whether the next request is the one that asks for a stream, and reserves that for
// it.
func (s *Session) claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fresh || s.asking || s.plain || s.closed {
		return false
	}
	s.asking = true
	return true
}

// isFresh reports whether a call is to ask for a stream, or is asking.
func (s *Session) isFresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.undecided()
}

// undecided is isFresh with the lock held.
func (s *Session) undecided() bool {
	return (s.fresh || s.asking || s.joining) && !s.plain && !s.closed
}

// asked records the outcome of the request that asked, with its error.
func (s *Session) asked(k *ask, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
	switch {
	case k.n != nil || s.link != nil || s.closed:
		s.fresh, s.unanswered = false, 0
	case k.invited != nil:
		s.fresh, s.joining, s.agreed.Why = false, true,
			"the stream that the answer to the first call names is not open yet"
		s.wait.Go(func() { s.accept(k.invited) })
	case k.refused == nil, errors.Is(err, &negotiate.Error{Code: negotiate.Unreachable}):
		// No server was there: the next call asks again.
		s.fresh = true
	case k.passing, err != nil && s.agreed.HHFR && s.unanswered < maxUnanswered:
		// The refusal may pass, or the server has served a stream before.
		if err != nil {
			s.unanswered++
		}
		s.fresh, s.agreed.Why = true, k.refused.Error()
	default:
		s.agreed.Tried = append(slices.Clip(s.agreed.Tried),
			negotiate.Attempt{Mode: negotiate.FirstCall, Why: k.refused.Error()})
		s.refusedLocked(k.refused)
	}
}

// askNow asks for a stream with a request of its own, instead of with the next call.
func (s *Session) askNow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	ctx, end := within(ctx, s.cfg.Timeout)
	defer end()
	n := s.negotiation()
	err := n.try(negotiate.FirstCall, func() error { return n.question(ctx) })
	if err == nil {
		s.begin(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
	var refused *refusal
	if errors.As(err, &refused) && !refused.passing {
		if !s.closed {
			s.refusedLocked(err)
		}
		return nil
	}
	if refused != nil {
		return &negotiate.Error{Code: negotiate.NoHHFR, At: -1, Err: err}
	}
	return err
}

// maxUnanswered is how many calls in a row may ask without an answer in a session that has had a
// stream: something on the path may have changed.
const maxUnanswered = 2

// refusedLocked makes the session speak plain SOAP: the peer gave a reason.
func (s *Session) refusedLocked(why error) {
	s.plain, s.agreed.Why = true, why.Error()
	s.cfg.Log.Info("plain SOAP", "url", loggable(s.url), "why", why)
	s.wait.Go(func() {
		s.tell()
		s.rememberBroken(why)
	})
}

// accept opens the stream that an answer named, while calls go on. Where that is not possible, a
// request of its own may be upgraded although the call was not. That request has no body, since
// HAProxy upgrades no request with one, and goes by HTTP/1.1.
func (s *Session) accept(i *upgrade.Invitation) {
	ctx, cancel := within(s.ctx, s.cfg.Timeout)
	defer cancel()
	n := s.negotiation()
	err := n.try(negotiate.FirstCall, func() error {
		ctx, cancel := within(ctx, s.cfg.Timeout/2) // the rest is for the request of its own
		defer cancel()
		return n.invited(ctx, i)
	})
	if err != nil && s.ctx.Err() == nil {
		if by := s.negotiation(); by.upgradedBeside(ctx) {
			n, err = by, nil
		}
	}
	if err == nil {
		s.begin(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joining = false
	if err == nil || s.closed {
		return
	}
	s.agreed.Tried = slices.Concat(s.agreed.Tried, n.agreed.Tried)
	var refused *refusal
	if errors.As(err, &refused) && refused.blocked != "" {
		s.agreed.NoStream = refused.blocked
		if s.cfg.OnAgreed == nil { // OnAgreed would report it otherwise
			s.cfg.Log.Warn(blockedWarning, "url", loggable(s.url), "why", err, "hint", BlockedHint)
		}
	}
	s.refusedLocked(err)
}

// firstReply returns the reply to the request that asked, if it comes over a stream.
func (s *Session) firstReply(ctx context.Context, k *ask, err error) (*streamer.Message, error) {
	if err != nil || k.pending == nil {
		return k.reply, err
	}
	reply, err := k.pending.Reply(ctx)
	if err == nil {
		return reply, nil
	}
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		unsent, failure := s.judge(ctx, l, nil, err)
		if unsent {
			failure = &negotiate.Error{Code: negotiate.Unsent, At: -1, Err: err}
		}
		err = failure
	}
	return nil, err
}

// firstCall sends the request of an HTTP client that asks for a stream.
func (s *Session) firstCall(req *http.Request) (*http.Response, error) {
	k := &ask{}
	resp, err := s.asker.RoundTrip(req.WithContext(context.WithValue(req.Context(), askKey{}, k)))
	s.asked(k, err)
	reply, err := s.firstReply(req.Context(), k, err)
	if err != nil || reply == nil {
		return resp, err
	}
	return s.replies.Response(reply, req)
}
