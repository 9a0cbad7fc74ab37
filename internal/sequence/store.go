package sequence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/pieces"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// stateStore is the store of one state.
type stateStore struct {
	store  ctxstore.Store
	life   time.Duration
	engine *wsrm.Engine
}

// Commit implements [wsrm.Store].
func (k *stateStore) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	return k.store.Put(ctx, uri, value, ctxstore.PutOptions{IfRevision: &expect, TTL: lasts(k.engine, k.life)})
}

// SpareLife is the longest [Config].Life of what nobody needs: of a sequence in which nothing was
// committed, or that is over at both ends.
const SpareLife = 7 * 24 * time.Hour

// lasts is how long a state is kept from its last change; 0: for good, as what has an effect is.
func lasts(e *wsrm.Engine, life time.Duration) time.Duration {
	switch {
	case len(e.Effect()) > 0:
		return 0
	case e.Over(), e.Last() == 0 && len(e.Committed()) == 0:
		return min(life, SpareLife)
	}
	return life
}

// Lasts is how long the state of a sequence that was closed is kept from its last change; 0: for
// good.
func (q *Sequence) Lasts() time.Duration { return lasts(q.engine, q.cfg.Life) }

// Forget takes the state of a sequence that nobody has open, and all that came of its long
// messages, out of a store.
func Forget(ctx context.Context, store ctxstore.Store, uri string) error {
	err := store.Delete(ctx, uri, nil)
	if err != nil && !errors.Is(err, ctxstore.NotFound) {
		return err
	}
	for _, direction := range []string{"sent", "arrived"} {
		if err := pieces.Of(store, uri, direction, 0).DropAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// restore makes an engine of what lies under uri; found is false if there is nothing.
func restore(ctx context.Context, cfg Config) (e *wsrm.Engine, found bool, err error) {
	store := &stateStore{store: cfg.Store, life: cfg.Life}
	entry, err := cfg.Store.Get(ctx, cfg.URI)
	switch {
	case errors.Is(err, ctxstore.NotFound):
		e, err = wsrm.New(cfg.engine(), store, cfg.URI)
	case err == nil:
		found = true
		e, err = wsrm.Restore(cfg.engine(), store, cfg.URI, entry.Value, entry.Revision)
	default:
		return nil, false, &Error{Code: Unstored, Err: err}
	}
	if err != nil {
		return nil, found, &Error{Code: BadConfig, Err: err}
	}
	store.engine = e
	return e, found, nil
}

// track goes on with the run that the state has, or begins one. The state of an initiator has no
// other effect.
func (q *Sequence) track(found bool) error {
	switch stored := q.engine.Effect(); {
	case q.cfg.Run == nil:
	case !found:
		q.runs.begin(*q.cfg.Run, 0)
		q.engine.SetEffect(q.runs.append(nil))
	case len(stored) > 0:
		if err := q.runs.restore(stored); err != nil {
			return &Error{Code: BadConfig, Err: fmt.Errorf("run: %w", err)}
		}
	}
	return nil
}
