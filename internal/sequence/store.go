package sequence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// stateStore is the store of one state. What has an effect stays for good; else a state goes when
// nothing has changed it for life.
type stateStore struct {
	store ctxstore.Store
	life  time.Duration
}

// Commit implements [wsrm.Store].
func (k stateStore) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	o := ctxstore.PutOptions{IfRevision: &expect, TTL: k.life}
	if effect, err := wsrm.EffectOf(value); err != nil || len(effect) > 0 {
		o.TTL = 0
	}
	return k.store.Put(ctx, uri, value, o)
}

// restore makes an engine of what lies under uri; found is false if there is nothing.
func restore(ctx context.Context, cfg Config) (e *wsrm.Engine, found bool, err error) {
	store := stateStore{cfg.Store, cfg.Life}
	entry, err := cfg.Store.Get(ctx, cfg.URI)
	switch {
	case errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}):
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
