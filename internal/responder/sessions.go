package responder

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/responder/machine"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// sessions carries out what the machine of a responder's sessions decides. One timer is for the
// records of all of them, which last while their streams are open: there may be many, most of them
// idle. All methods are safe for concurrent use.
type sessions struct {
	cfg  *Config
	life *life

	mu      sync.Mutex
	machine *machine.Machine
	wakes   clock.Timer // nil: no session was joined
	closed  bool

	storeFails atomic.Bool // the log says so
}

func newSessions(cfg *Config, l *life) *sessions {
	kept := keptContexts * cfg.MaxSessions
	if cfg.Archive {
		kept = 0
	}
	return &sessions{cfg: cfg, life: l, machine: machine.New(machine.Config{
		Max: cfg.MaxSessions, PerPeer: cfg.MaxPerPeer, JoinWithin: cfg.JoinWithin, Kept: kept,
	})}
}

// happened tells the machine of an event, and carries out what follows; false: there is no slot.
func (s *sessions) happened(ctx context.Context, e machine.Event) (ok bool) {
	s.mu.Lock()
	tasks := slices.Clone(s.machine.Step(s.cfg.Clock.Now(), e))
	for _, t := range tasks {
		if t.Do == machine.Wake { // in the order of events
			s.wakeLocked(t.At)
		}
	}
	s.mu.Unlock()
	ok = true
	for _, t := range tasks {
		switch id := negotiate.SessionID(t.Session); t.Do {
		case machine.TurnAway:
			ok = false
		case machine.Forget:
			s.forget(ctx, id, t.Revision)
		case machine.Extend:
			s.extend(id, t.Lifetime)
		case machine.Wake:
		}
	}
	return ok
}

// wakeLocked sets the timer.
func (s *sessions) wakeLocked(at time.Time) {
	wait := at.Sub(s.cfg.Clock.Now())
	switch {
	case s.closed:
	case s.wakes == nil:
		s.wakes = s.cfg.Clock.AfterFunc(wait, s.woken)
	default:
		s.wakes.Reset(wait)
	}
}

// woken extends the records of sessions that are due.
func (s *sessions) woken() {
	if !s.life.enter() {
		return
	}
	defer s.life.leave()
	s.happened(s.life.ctx, machine.Woken{})
}

// extend keeps the record of a session for its lifetime from now on.
func (s *sessions) extend(id negotiate.SessionID, lifetime time.Duration) {
	ctx, cancel := context.WithTimeout(s.life.ctx, negotiate.DefaultTimeout)
	defer cancel()
	facts, err := coders.Extend(ctx, s.cfg.Store, id.URI(), id, s.cfg.Clock.Now(), lifetime)
	if facts != nil {
		err = unchanging.KeepScope(ctx, s.cfg.Store, facts, s.cfg.archived(lifetime))
	}
	if err != nil && s.life.ctx.Err() == nil {
		_ = s.storeFailed(s.life.ctx, "session not kept", id, err)
	}
}

// forget deletes the record of a session, with what is for it alone, if it is still at a revision;
// 0: at any.
func (s *sessions) forget(ctx context.Context, id negotiate.SessionID, revision uint64) {
	s.dropScope(ctx, id)
	var at *uint64
	if revision != 0 {
		at = ctxstore.If(revision)
	}
	err := s.cfg.Store.Delete(ctx, id.URI(), at)
	// it is gone, or joined again
	if err != nil && !errors.Is(err, ctxstore.NotFound) && !errors.Is(err, ctxstore.Conflict) {
		s.cfg.Log.Warn("context of a session not deleted", "session", id.String(), "err", err)
	}
}

// dropScope is the reverse of [unchanging.KeepScope], for a session whose record is about to be
// deleted.
func (s *sessions) dropScope(ctx context.Context, id negotiate.SessionID) {
	if s.cfg.Common == nil {
		return
	}
	entry, err := s.cfg.Store.Get(ctx, id.URI())
	if err != nil {
		return
	}
	if facts, err := negotiate.ParseFacts(entry.Value); err == nil && facts.Common != nil {
		unchanging.DropScope(ctx, s.cfg.Store, &facts)
	}
}

// left records that a stream of a session has ended.
func (s *sessions) left(ctx context.Context, id negotiate.SessionID, headers []string) {
	const plain = 1 << 10 // bytes of a record without headers, roughly
	weight := 1
	for _, block := range headers {
		weight += 1 + len(block)/plain
	}
	s.happened(ctx, machine.Left{Session: machine.ID(id), Weight: weight})
}

// storeFailed logs that the store failed: once, until it works again. It returns the refusal for
// that.
func (s *sessions) storeFailed(ctx context.Context, what string, id negotiate.SessionID, err error) error {
	level := slog.LevelWarn
	if s.storeFails.Swap(true) {
		level = slog.LevelDebug
	}
	s.cfg.Log.Log(ctx, level, what, "session", id.String(), "err", err)
	return internalRefusal(what, err)
}

// lasts has a session last whose record is in the store, for its lifetime from now on.
func (s *sessions) lasts(ctx context.Context, id negotiate.SessionID, lifetime time.Duration) {
	s.storeFails.Store(false)
	s.happened(ctx, machine.Lasting{Session: machine.ID(id), Lifetime: lifetime})
}

// close stops the timer.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.wakes != nil {
		s.wakes.Stop()
	}
}

// keepKnown stores what the coder of an ending stream knows of the peer, for the next stream of the
// session.
func (s *sessions) keepKnown(ctx context.Context, id negotiate.SessionID, coder streamer.Coder) {
	coders.KeepKnown(ctx, s.cfg.Store, id.URI(), id, s.cfg.Clock.Now(), coder, func(err error) {
		s.cfg.Log.Warn("session not updated", "session", id.String(), "err", err)
	})
}
