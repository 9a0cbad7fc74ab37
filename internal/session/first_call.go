package session

import (
	"context"
	"net/http"
	"slices"

	"github.com/hhfr/hhfr/internal/session/machine"
	"github.com/hhfr/hhfr/internal/upgrade"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// claim reports whether the next request is the one that asks for a stream, and reserves that for
// it.
func (r *runner) claim() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.step(machine.Called{})) > 0
}

// isFresh reports whether a call is to ask for a stream, or is asking.
func (r *runner) isFresh() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Undecided()
}

// asked records the outcome of the request that asked, with its error.
func (r *runner) asked(k *ask, err error) {
	if k.n != nil {
		return // it has opened a stream
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.step(machine.Answered{
		Invited: k.invited != nil,
		Refused: k.refused.err != nil && !isUnreachable(err), // else nobody was there
		Passes:  k.refused.passing,
		Silent:  err != nil,
	}) {
		switch a.Do {
		case machine.Join:
			r.agreed.Why = "the stream that the answer to the first call names is not open yet"
			r.wait.Go(func() { r.accept(k.invited) })
		case machine.Explain:
			r.agreed.Why = k.refused.Error()
		default:
			r.agreed.Tried = append(slices.Clip(r.agreed.Tried),
				negotiate.Attempt{Mode: negotiate.FirstCall, Why: k.refused.Error()})
			r.plain(a, &k.refused)
		}
	}
}

// askNow asks for a stream with a request of its own, instead of with the next call.
func (r *runner) askNow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	ctx, end := within(ctx, r.cfg.Timeout)
	defer end()
	n := r.negotiation()
	err := n.try(negotiate.FirstCall, func() error { return n.question(ctx) })
	if err == nil {
		r.begin(n)
		return nil
	}
	refused := refusalOf(err)
	final := refused.err != nil && !refused.passing
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.step(machine.Answered{Refused: final}) {
		r.plain(a, err)
	}
	switch {
	case final:
		return nil
	case refused.err != nil:
		return coded(negotiate.NoHHFR, err)
	}
	return err
}

// accept opens the stream that an answer named, while calls go on. Where that is not possible, a
// request of its own may be upgraded although the call was not. That request has no body, since
// HAProxy upgrades no request with one, and goes by HTTP/1.1.
func (r *runner) accept(i *upgrade.Invitation) {
	ctx, cancel := within(r.ctx, r.cfg.Timeout)
	defer cancel()
	n := r.negotiation()
	err := n.try(negotiate.FirstCall, func() error {
		ctx, cancel := within(ctx, r.cfg.Timeout/2) // the rest is for the request of its own
		defer cancel()
		return n.invited(ctx, i)
	})
	if err != nil && r.ctx.Err() == nil {
		if by := r.negotiation(); by.upgradedBeside(ctx) {
			n, err = by, nil
		}
	}
	if err == nil {
		r.begin(n)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.step(machine.Refused{}) {
		r.agreed.Tried = slices.Concat(r.agreed.Tried, n.agreed.Tried)
		if refused := refusalOf(err); refused.blocked != "" {
			r.agreed.NoStream = refused.blocked
			if r.cfg.OnAgreed == nil { // OnAgreed would report it otherwise
				r.log.Warn(blockedWarning, "why", err, "hint", BlockedHint)
			}
		}
		r.plain(a, err)
	}
}

// ask sends the request that asks for a stream. Its reply may come over that.
func (r *runner) ask(
	ctx context.Context, send func(context.Context) (*http.Response, error),
) (*http.Response, *streamer.Message, error) {
	k := &ask{}
	resp, err := send(context.WithValue(ctx, askKey{}, k))
	r.asked(k, err)
	reply, err := r.firstReply(ctx, k, err)
	return resp, reply, err
}

// firstReply returns the reply to the request that asked, if it comes over a stream.
func (r *runner) firstReply(ctx context.Context, k *ask, err error) (*streamer.Message, error) {
	if err != nil || k.pending == nil {
		return k.reply, err
	}
	reply, err := k.pending.Reply(ctx)
	if err == nil {
		return reply, nil
	}
	r.mu.Lock()
	l := r.link
	r.mu.Unlock()
	if l != nil {
		unsent, failure := r.judge(ctx, l, nil, err)
		if unsent {
			failure = coded(negotiate.Unsent, err)
		}
		err = failure
	}
	return nil, err
}
