// Package lease lets users of a store on several machines hold its entries: by an entry beside each
// that expires unless its holder renews it.
package lease

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

const (
	// Life is how long an entry stays held when its holder is gone.
	Life = 15 * time.Second
	// renewal is how often a holder renews its lease: two may fail.
	renewal = Life / 3
)

// Leases are the entries that a user of a store holds. All methods are safe for concurrent use.
type Leases struct {
	store ctxstore.Store
	clock clock.Clock

	open context.Context // done once closed
	shut context.CancelFunc
	mu   sync.Mutex
	held sync.WaitGroup
}

// New returns the leases of a store, none yet. A nil clock means the machine's.
func New(store ctxstore.Store, c clock.Clock) *Leases {
	if c == nil {
		c = clock.Real()
	}
	l := &Leases{store: store, clock: c}
	l.open, l.shut = context.WithCancel(context.Background())
	return l
}

// URI is the entry that says that another one is held.
func URI(uri string) string {
	sum := sha256.Sum256([]byte(uri))
	return ctxstore.HoldPrefix + hex.EncodeToString(sum[:])
}

// Hold is [ctxstore.Holder].Hold.
func (l *Leases) Hold(uri string) (release func(), err error) {
	if err := ctxstore.CheckURI(uri); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open.Err() != nil {
		return nil, &ctxstore.Error{Code: ctxstore.Closed, URI: uri}
	}
	at := URI(uri)
	revision, err := l.store.Put(l.open, at, []byte(uri), ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: Life})
	if errors.Is(err, ctxstore.Conflict) {
		return nil, &ctxstore.Error{Code: ctxstore.Held, URI: uri}
	} else if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(l.open)
	gone := make(chan struct{})
	l.held.Go(func() {
		defer close(gone)
		l.renew(ctx, at, uri, revision)
	})
	return func() {
		cancel()
		<-gone
	}, nil
}

// renew keeps a lease until ctx is done, and gives it up then. One that another user has got, since
// it could not be renewed in time, is left to it.
func (l *Leases) renew(ctx context.Context, at, uri string, revision uint64) {
	for {
		err := l.clock.Sleep(ctx, renewal)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewal)
		if err != nil {
			_ = l.store.Delete(last, at, &revision) // otherwise it expires
			cancel()
			return
		}
		next, err := l.store.Put(last, at, []byte(uri), ctxstore.PutOptions{IfRevision: &revision, TTL: Life})
		cancel()
		switch {
		case err == nil:
			revision = next
		case errors.Is(err, ctxstore.Conflict):
			return
		}
	}
}

// Close releases all.
func (l *Leases) Close() {
	l.mu.Lock()
	l.shut()
	l.mu.Unlock()
	l.held.Wait()
}
