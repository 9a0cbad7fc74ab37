package session

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/hhfr/hhfr/internal/session/machine"
)

// attempt negotiates with one node after another, until there is a stream, or the machine wants no
// further attempt: end is then what comes instead. now: by a path that needs no call.
func (r *runner) attempt(
	ctx context.Context, careful, now bool,
) (n *negotiation, end machine.Task, err error) {
	for {
		n = r.negotiation()
		n.careful = careful
		if err = n.find(ctx, now); err == nil || errors.Is(err, errNotAsked) || ctx.Err() != nil {
			return n, end, err
		}
		r.nodes.leave(n.url)
		next := r.missed(n, err)
		if next.Do != machine.Try {
			return n, next, err
		}
		if next.After == 0 {
			continue
		}
		level := slog.LevelInfo
		if next.Early && r.outbox.opens() {
			level = slog.LevelWarn // who waits for the first stream may have named the wrong peer
		}
		n.log.Log(ctx, level, "no stream yet", "err", err)
		if r.cfg.Clock.Sleep(ctx, next.After) != nil {
			return n, end, err
		}
	}
}

// missed records that an attempt failed, and returns what comes next; no deed: nothing.
func (r *runner) missed(n *negotiation, err error) (next machine.Task) {
	e := machine.Missed{
		Passes:  passes(err, r.outbox.opens()),
		Portal:  refusalOf(err).portal,
		Forgets: n.agreed.NoRoom() || errors.Is(err, errAgreedPlain),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if tasks := r.step(e); len(tasks) > 0 { // there is never more than one
		next = tasks[0]
	}
	return next
}

// passes reports whether an attempt to get a stream may succeed later. A peer that was there before
// may be back after anything but its own refusal; one that was not, where nobody or only half an
// answer came.
func passes(err error, opens bool) bool {
	refused := refusalOf(err)
	var wrong *SchemeError
	var name *net.DNSError
	switch {
	case errors.Is(err, errAgreedPlain):
		return false
	case refused.err != nil:
		return refused.passing && (!refused.portal || !opens)
	case !opens:
		return true
	}
	unknown := errors.As(err, &name) && name.IsNotFound
	return isUnreachable(err) && !unknown && !errors.As(err, &wrong) && TroubleOf(err) == 0
}
