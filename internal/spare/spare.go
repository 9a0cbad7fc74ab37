// Package spare is a context store with memory as a fallback: shapes, contexts of sessions, and
// other entries that can be made anew are kept in memory when the store has no space for them or
// can only be read, and shapes when it cannot be reached. What must be stored fails as without it.
//
// Nobody waits long for a store that does not answer: what can be made anew is given up after a
// while, and not asked for again until the store had time to come back. What must be stored waits
// as long as the store itself does.
package spare

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

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
	// Patience is how long a call may take; 0 means [DefaultPatience].
	Patience time.Duration
	// Log gets one warning when the store has no space for the first time, and one whenever it goes
	// away; nil: it is not logged.
	Log *slog.Logger
}

// DefaultPatience is longer than a slow store takes, and shorter than callers wait for plain SOAP.
const DefaultPatience = 2 * time.Second

// Store implements [ctxstore.Store] over another one. Close closes both. Watch reports only changes
// in the other.
type Store struct {
	ctxstore.Store
	spare    ctxstore.Store
	prefixes []string
	warn     func(error)
	outage   *outage
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
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	var once sync.Once
	return &Store{
		Store: store, spare: memory.New(memory.Config{Clock: cfg.Clock}),
		prefixes: append([]string{ctxstore.ShapePrefix, ctxstore.SessionPrefix}, cfg.Prefixes...),
		warn: func(err error) {
			once.Do(func() {
				cfg.Log.Warn(noRoom(err)+": new shapes and sessions are kept in memory, for this process", "err", err)
			})
		},
		outage: &outage{patience: cmp.Or(cfg.Patience, DefaultPatience), clock: cfg.Clock, log: cfg.Log},
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

// ask calls a store, for no longer than that makes sense for an entry.
func (s *Store) ask(ctx context.Context, uri string, in ctxstore.Store, call func(context.Context) error) error {
	if in == s.spare || !s.mayLieInMemory(uri) {
		return call(ctx)
	}
	return s.outage.bound(ctx, call)
}

// Get implements [ctxstore.Store].
func (s *Store) Get(ctx context.Context, uri string) (e ctxstore.Entry, err error) {
	in := s.of(ctx, uri)
	err = s.ask(ctx, uri, in, func(ctx context.Context) (err error) {
		e, err = in.Get(ctx, uri)
		return err
	})
	return e, err
}

// Has reports whether there is an entry; see [ctxstore.Has].
func (s *Store) Has(ctx context.Context, uri string) (there bool, err error) {
	in := s.of(ctx, uri)
	err = s.ask(ctx, uri, in, func(ctx context.Context) (err error) {
		there, err = ctxstore.Has(ctx, in, uri)
		return err
	})
	return there, err
}

// noRoom says why a store takes nothing new; empty: it is not that.
func noRoom(err error) string {
	switch {
	case errors.Is(err, ctxstore.Full):
		return "the context store is full"
	case errors.Is(err, ctxstore.Permission):
		return "the context store cannot be written"
	}
	return ""
}

// Put implements [ctxstore.Store]. A new entry goes to memory if the store has no space for it, or
// cannot be written; an entry that the store has stays there. A shape also goes to memory if the
// store cannot be reached.
func (s *Store) Put(
	ctx context.Context, uri string, value []byte, opt ctxstore.PutOptions,
) (revision uint64, err error) {
	in := s.of(ctx, uri)
	err = s.ask(ctx, uri, in, func(ctx context.Context) (err error) {
		revision, err = in.Put(ctx, uri, value, opt)
		return err
	})
	if _, shape := ctxstore.ParseShapeURI(uri); shape && errors.Is(err, ctxstore.Unavailable) {
		return s.spare.Put(ctx, uri, value, opt) // it is the same wherever it is
	}
	if in == s.spare || noRoom(err) == "" || !s.mayLieInMemory(uri) {
		return revision, err
	}
	if _, there := s.Get(ctx, uri); !errors.Is(there, ctxstore.NotFound) {
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
	in := s.of(ctx, uri)
	return s.ask(ctx, uri, in, func(ctx context.Context) error { return in.Delete(ctx, uri, ifRevision) })
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
