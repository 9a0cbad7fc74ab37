package sequence

import (
	"context"
	"errors"
	"log/slog"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Open makes a sequence, or goes on with the one that the store has. The caller calls Close in the
// end. Errors: BadConfig, Unstored.
func Open(ctx context.Context, cfg Config) (*Sequence, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Store == nil || cfg.URI == "" || cfg.Life < 0 {
		return nil, &Error{Code: BadConfig, Err: errors.New("needs Store and URI, and a Life of 0 or more")}
	}
	cfg.Short, cfg.Piece = within(cfg.Short, MaxMessage), within(cfg.Piece, pieceSize)
	e, found, err := restore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	q := &Sequence{cfg: cfg, engine: e, wake: make(chan struct{}, 1), quit: make(chan struct{}),
		ended: make(chan struct{}), over: make(chan struct{})}
	if err := q.track(found); err != nil {
		return nil, err
	}
	if !found { // whoever has seen the sequence can count on finding it again
		if _, err := e.Step(ctx, cfg.Clock.Now(), wsrm.Event{Kind: wsrm.Wake}); err != nil {
			return nil, &Error{Code: Unstored, Err: err}
		}
	}
	if err := q.openPieces(ctx); err != nil {
		return nil, &Error{Code: Unstored, Err: err}
	}
	q.ctx, q.cancel = context.WithCancel(context.WithoutCancel(ctx))
	q.loop.sent, q.loop.bodies = map[uint64]*Sending{}, map[uint64]string{}
	q.note()
	undone := 0
	e.Undone(func(number uint64, m []byte, _ bool) bool {
		undone += weigh(m)
		if number > q.runs.at {
			q.runs.accepted(m)
		}
		return true
	})
	q.slots.init(int(q.status.Accepted-q.status.Done), undone)
	go q.run()
	return q, nil
}
