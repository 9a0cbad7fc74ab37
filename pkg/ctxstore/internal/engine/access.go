package engine

import (
	"context"
	"errors"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// ForReading is why a store cannot be changed that was opened for that.
const ForReading = "opened for reading only"

// Access is what every call of a store checks first. It is safe for concurrent use.
type Access struct {
	// At is where the store is, for errors.
	At string
	// Locked is why nothing can be changed; empty: all can.
	Locked string
	// Open is done once the store is closed.
	Open context.Context
	Shut context.CancelFunc
}

// NewAccess returns that of a store that is open.
func NewAccess(at string) *Access {
	a := &Access{At: at}
	a.Open, a.Shut = context.WithCancel(context.Background())
	return a
}

// Usable fails once the store is closed, or ctx is done.
func (a *Access) Usable(ctx context.Context) error {
	if a.Open.Err() != nil {
		return &ctxstore.Error{Code: ctxstore.Closed, At: a.At}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Readable is Usable for a call about one entry.
func (a *Access) Readable(ctx context.Context, uri string) error {
	if err := ctxstore.CheckURI(uri); err != nil {
		return err
	}
	return a.Usable(ctx)
}

// Writable is Readable for a call that changes the entry.
func (a *Access) Writable(ctx context.Context, uri string) error {
	if err := a.Readable(ctx, uri); err != nil || a.Locked == "" {
		return err
	}
	return &ctxstore.Error{Code: ctxstore.Permission, URI: uri, At: a.At, Err: errors.New(a.Locked)}
}

// Expiry is when an entry expires that lives so long from now on; 0: never.
func Expiry(c clock.Clock, ttl time.Duration) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return c.Now().Add(ttl)
}

// Expired reports whether an entry that expires at a time, zero being never, has.
func Expired(c clock.Clock, at time.Time) bool { return !at.IsZero() && !c.Now().Before(at) }
