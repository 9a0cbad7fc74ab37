// Package spare is a context store with memory as a fallback: shapes, contexts of sessions, and
// other entries that can be made anew are kept in memory when the store has no space for them. What
// must be stored fails as without it.
package spare

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// Config of a store. The zero value works.
type Config struct {
	// Prefixes begin the URIs of entries, besides shapes and sessions, that may be kept in memory.
	Prefixes []string
	// Clock is the clock for times to live in memory; nil means the machine's.
	Clock clock.Clock
	// Log gets one warning when the store has no space for the first time; nil: it is not logged.
	Log *slog.Logger
}

// Store implements [ctxstore.Store] over another one. Close closes both. Watch reports only changes
// in the other.
type Store struct {
	ctxstore.Store
	spare    ctxstore.Store
	prefixes []string
	warn     func(error)
}

var (
	_ ctxstore.Store  = (*Store)(nil)
	_ ctxstore.Holder = (*Store)(nil)
)

// New adds memory as a fallback to a store, which the new store owns from then on.
func New(store ctxstore.Store, cfg Config) *Store {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	var once sync.Once
	return &Store{
		Store: store, spare: memory.New(memory.Config{Clock: cfg.Clock}),
		prefixes: append([]string{ctxstore.ShapePrefix, ctxstore.SessionPrefix}, cfg.Prefixes...),
		warn: func(err error) {
			once.Do(func() {
				cfg.Log.Warn("the context store is full: new shapes and sessions are kept in memory, for this process",
					"err", err)
			})
		},
	}
}

// Volatile returns what the store below says.
func (s *Store) Volatile() bool { return !ctxstore.Persists(s.Store) }

// Hold implements [ctxstore.Holder].
func (s *Store) Hold(uri string) (release func(), err error) { return ctxstore.Hold(s.Store, uri) }

// of returns the store that has an entry: memory, if the entry is there because the store had no
// space for it.
func (s *Store) of(ctx context.Context, uri string) ctxstore.Store {
	if s.mayLieInMemory(uri) {
		if _, err := s.spare.Get(ctx, uri); err == nil {
			return s.spare
		}
	}
	return s.Store
}

func (s *Store) mayLieInMemory(uri string) bool {
	return slices.ContainsFunc(s.prefixes, func(prefix string) bool { return strings.HasPrefix(uri, prefix) })
}

// Get implements [ctxstore.Store].
func (s *Store) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	return s.of(ctx, uri).Get(ctx, uri)
}

// Put implements [ctxstore.Store]. A new entry goes to memory if the store has no space for it; an
// entry that the store has stays there.
func (s *Store) Put(ctx context.Context, uri string, value []byte, opt ctxstore.PutOptions) (uint64, error) {
	in := s.of(ctx, uri)
	revision, err := in.Put(ctx, uri, value, opt)
	if in == s.spare || !errors.Is(err, &ctxstore.Error{Code: ctxstore.Full}) || !s.mayLieInMemory(uri) {
		return revision, err
	}
	if _, there := s.Store.Get(ctx, uri); !errors.Is(there, &ctxstore.Error{Code: ctxstore.NotFound}) {
		return revision, err
	}
	s.warn(err)
	return s.spare.Put(ctx, uri, value, opt)
}

// Commit implements [ctxstore.Store].
func (s *Store) Commit(ctx context.Context, uri string, expect uint64, value []byte) (revision uint64, err error) {
	return s.of(ctx, uri).Commit(ctx, uri, expect, value)
}

// Delete implements [ctxstore.Store].
func (s *Store) Delete(ctx context.Context, uri string, ifRevision *uint64) error {
	return s.of(ctx, uri).Delete(ctx, uri, ifRevision)
}

// List implements [ctxstore.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	return func(yield func(ctxstore.Info, error) bool) {
		var spare []ctxstore.Info
		for i, err := range s.spare.List(ctx, prefix) {
			if err == nil {
				spare = append(spare, i)
			}
		}
		for i, err := range s.Store.List(ctx, prefix) {
			for err == nil && len(spare) > 0 && spare[0].URI < i.URI {
				if !yield(spare[0], nil) {
					return
				}
				spare = spare[1:]
			}
			if !yield(i, err) {
				return
			}
		}
		for _, i := range spare {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// Close implements [ctxstore.Store].
func (s *Store) Close() error { return errors.Join(s.Store.Close(), s.spare.Close()) }
