package spare

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// outage is what is known of a store that does not answer. While there is one, only one call in a
// while finds out whether the store is there again; the others fail at once.
type outage struct {
	patience time.Duration
	clock    clock.Clock
	log      *slog.Logger

	mu    sync.Mutex
	away  bool
	again time.Time // when the next call may ask
}

// errPatience: the store did not answer in time.
var errPatience = errors.New("it does not answer in time")

// bound calls a store, and gives up in time.
func (o *outage) bound(ctx context.Context, call func(context.Context) error) error {
	if !o.mayAsk() {
		return &ctxstore.Error{Code: ctxstore.Unavailable, Err: errors.New("it did not answer a moment ago")}
	}
	bounded, cancel := context.WithTimeoutCause(ctx, o.patience, errPatience)
	defer cancel()
	err := call(bounded)
	if ctx.Err() != nil {
		return err // nothing is known
	}
	if bounded.Err() != nil && err != nil {
		err = &ctxstore.Error{Code: ctxstore.Unavailable, Err: errPatience}
	}
	o.heard(err)
	return err
}

// mayAsk reports whether a call may ask the store.
func (o *outage) mayAsk() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	if !o.away {
		return true
	}
	if now.Before(o.again) {
		return false
	}
	o.again = now.Add(2 * o.patience)
	return true
}

// heard notes the outcome of a call, and logs what has changed.
func (o *outage) heard(err error) {
	away := errors.Is(err, ctxstore.Unavailable)
	o.mu.Lock()
	was := o.away
	if o.away = away; away && !was {
		o.again = o.clock.Now().Add(o.patience)
	}
	o.mu.Unlock()
	switch {
	case away && !was:
		o.log.Warn("the context store cannot be reached: new shapes are kept in memory, for this process, "+
			"and new sessions have to wait", "err", err)
	case was && !away:
		o.log.Info("the context store can be reached again")
	}
}
