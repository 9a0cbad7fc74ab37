package responder

import (
	"context"
	"time"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Sessions last while their streams are open: halfway through its lifetime, the record of each is
// kept for another one. One timer does that for all of them, since there may be many, most of them
// idle.

// last has a session that was kept for its lifetime just now last.
func (r *Responder) last(id negotiate.SessionID, lifetime time.Duration) {
	if r.registry.last(id, lifetime) {
		r.extendLater()
	}
}

// extendLater sets the timer to when the next session is due.
func (r *Responder) extendLater() {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.registry.nextDue()
	if r.closed || at.IsZero() {
		return
	}
	wait := at.Sub(r.cfg.Clock.Now())
	if r.extends == nil {
		r.extends = r.cfg.Clock.AfterFunc(wait, r.extend)
	} else {
		r.extends.Reset(wait)
	}
}

// extend keeps the sessions that are due.
func (r *Responder) extend() {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.wait.Add(1)
	r.mu.Unlock()
	defer r.wait.Done()
	for id, lifetime := range r.registry.due() {
		ctx, cancel := context.WithTimeout(r.ctx, negotiate.DefaultTimeout)
		facts, err := coders.Extend(ctx, r.cfg.Store, id.URI(), id, r.cfg.Clock.Now(), lifetime)
		if facts != nil {
			err = unchanging.KeepScope(ctx, r.cfg.Store, facts, r.archived(lifetime))
		}
		cancel()
		switch {
		case r.ctx.Err() != nil:
			return
		case err != nil:
			_ = r.storeFailed(r.ctx, "session not kept", id, err)
		}
	}
	r.extendLater()
}
