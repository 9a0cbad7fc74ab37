// Package memory is the context store that ends with its process.
package memory

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/follow"
)

// Config of a store. The zero value works.
type Config struct {
	// MaxBytes is the space for URIs and values together, in bytes; 0 means
	// [ctxstore.DefaultMaxBytes]. Beyond it the least recently used shapes are dropped; when there
	// are none left, Put fails with [ctxstore.Full]. Memory of expired entries is freed as others
	// are put. Values that are much like others take less than they count.
	MaxBytes int64
	// Clock is the clock for times to live; nil means the machine's.
	Clock clock.Clock
}

// Store implements [ctxstore.Store].
type Store struct {
	max   int64
	clock clock.Clock

	mu       sync.Mutex
	entries  map[string]*storedEntry
	purgeAt  int // number of entries at which those that expired are dropped
	used     int64
	revision uint64 // last one given to a mutable entry
	use      uint64 // counts uses, to find the least recently used
	watchers map[chan struct{}]bool
	likes    likes

	open     context.Context // done once the store is closed
	shut     context.CancelFunc
	watching sync.WaitGroup

	holds ctxstore.Holds
}

type storedEntry struct {
	value    keptValue
	revision uint64
	expires  time.Time
	used     uint64
}

var (
	_ ctxstore.Store  = (*Store)(nil)
	_ ctxstore.Holder = (*Store)(nil)
)

// New returns an empty store.
func New(cfg Config) *Store {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = ctxstore.DefaultMaxBytes
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	s := &Store{max: cfg.MaxBytes, clock: cfg.Clock, entries: map[string]*storedEntry{},
		watchers: map[chan struct{}]bool{}}
	s.open, s.shut = context.WithCancel(context.Background())
	return s
}

// Get implements [ctxstore.Store].
func (s *Store) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	if err := ctxstore.CheckURI(uri); err != nil {
		return ctxstore.Entry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return ctxstore.Entry{}, err
	}
	e := s.find(uri)
	if e == nil {
		return ctxstore.Entry{}, &ctxstore.Error{Code: ctxstore.NotFound, URI: uri}
	}
	s.touch(e)
	return ctxstore.Entry{Value: e.value.bytes(), Revision: e.revision, Expires: e.expires}, nil
}

// Has reports whether there is an entry; see [ctxstore.Has].
func (s *Store) Has(ctx context.Context, uri string) (bool, error) {
	if err := ctxstore.CheckURI(uri); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return false, err
	}
	return s.find(uri) != nil, nil
}

// Put implements [ctxstore.Store].
func (s *Store) Put(ctx context.Context, uri string, value []byte, opt ctxstore.PutOptions) (uint64, error) {
	if err := ctxstore.CheckPut(uri, value, opt); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	if _, shape := ctxstore.ParseShapeURI(uri); shape {
		if e := s.find(uri); e != nil {
			s.touch(e)
			return e.revision, nil
		}
		return 1, s.set(uri, value, &storedEntry{revision: 1})
	}
	var expires time.Time
	if opt.TTL > 0 {
		expires = s.clock.Now().Add(opt.TTL)
	}
	return s.replace(uri, value, opt.IfRevision, expires)
}

// Commit implements [ctxstore.Store].
func (s *Store) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	if err := ctxstore.CheckCommit(uri, value); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	var expires time.Time
	if e := s.find(uri); e != nil {
		expires = e.expires
	}
	return s.replace(uri, value, &expect, expires)
}

// Delete implements [ctxstore.Store].
func (s *Store) Delete(ctx context.Context, uri string, ifRevision *uint64) error {
	if err := ctxstore.CheckURI(uri); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	e := s.find(uri)
	switch {
	case e == nil:
		return &ctxstore.Error{Code: ctxstore.NotFound, URI: uri}
	case ifRevision != nil && *ifRevision != e.revision:
		return conflict(uri, *ifRevision, e.revision)
	}
	s.remove(uri)
	s.wake()
	return nil
}

// List implements [ctxstore.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	return func(yield func(ctxstore.Info, error) bool) {
		list, err := s.list(ctx, prefix)
		if err != nil {
			yield(ctxstore.Info{}, err)
			return
		}
		for _, i := range list {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// Watch implements [ctxstore.Store]. Changes are reported at once; expired values are reported with
// the next change.
func (s *Store) Watch(ctx context.Context, prefix string) (<-chan ctxstore.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	wake, out := make(chan struct{}, 1), make(chan ctxstore.Change)
	s.watchers[wake] = true
	known := s.revisions(prefix)
	s.watching.Go(func() {
		defer cancel()
		defer context.AfterFunc(s.open, cancel)()
		follow.Run(ctx, known, wake, func(context.Context) (map[string]uint64, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.revisions(prefix), nil
		}, out)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, wake)
	})
	return out, nil
}

// Close implements [ctxstore.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	s.shut()
	s.mu.Unlock()
	s.watching.Wait()
	return nil
}

func (s *Store) ready(ctx context.Context) error {
	if s.open.Err() != nil {
		return &ctxstore.Error{Code: ctxstore.Closed}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Volatile returns true: the content ends with the process (see [ctxstore.Persists]).
func (s *Store) Volatile() bool { return true }

// Hold implements [ctxstore.Holder].
func (s *Store) Hold(uri string) (release func(), err error) { return s.holds.Hold("", uri) }
