package coders

import (
	"context"
	"errors"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Extend has a session that is recorded at uri, and the schemas that it names, be kept for a
// lifetime from now on: a session whose stream is open does not end. It returns what was agreed on,
// nil for a record that is left as it is: one that has gone, or is another session's by now.
func Extend(
	ctx context.Context, store ctxstore.Store, uri string, id negotiate.SessionID, now time.Time,
	lifetime time.Duration,
) (*negotiate.Facts, error) {
	entry, err := store.Get(ctx, uri)
	if err != nil {
		return nil, unlessGone(err)
	}
	c, err := negotiate.ParseContext(entry.Value)
	if err != nil || c.Session != id {
		return nil, nil
	}
	c.Expires = now.Add(lifetime)
	if entry.Value, err = c.Marshal(); err != nil {
		return nil, err
	}
	if err := extend(ctx, store, uri, entry, lifetime); err != nil {
		return nil, err
	}
	for _, description := range [...]string{c.RequestDescription, c.ReplyDescription} {
		if description == "" {
			continue
		}
		entry, err := store.Get(ctx, description)
		if err == nil && !entry.Expires.IsZero() {
			err = extend(ctx, store, description, entry, lifetime)
		}
		if err := unlessGone(err); err != nil {
			return nil, err
		}
	}
	return &c.Facts, nil
}

// extend has an entry be kept for a time from now on. One that is kept for good stays that.
func extend(ctx context.Context, store ctxstore.Store, uri string, entry ctxstore.Entry, ttl time.Duration) error {
	o := ctxstore.PutOptions{IfRevision: ctxstore.If(entry.Revision), TTL: ttl}
	if entry.Expires.IsZero() {
		o.TTL = 0
	}
	_, err := store.Put(ctx, uri, entry.Value, o)
	return unlessGone(err)
}

// unlessGone is err, but nil if an entry has gone or was changed meanwhile.
func unlessGone(err error) error {
	if errors.Is(err, ctxstore.NotFound) ||
		errors.Is(err, ctxstore.Conflict) {
		return nil
	}
	return err
}
