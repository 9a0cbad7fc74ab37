// Package memory is the context store that ends with its process.
package memory

import (
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
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

type inMemory = engine.Store

// Store implements [ctxstore.Store]. Its watches report changes at once, and expired values with
// the next change.
type Store struct {
	*inMemory
	storage *memoryStorage
	holds   ctxstore.Holds
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
	m := &memoryStorage{max: cfg.MaxBytes, clock: cfg.Clock, byURI: map[string]*storedEntry{}}
	return &Store{
		inMemory: engine.New(engine.NewAccess(""), m, engine.Config{Clock: cfg.Clock, Changes: &m.changes}),
		storage:  m,
	}
}

// Volatile returns true: the content ends with the process (see [ctxstore.Persists]).
func (s *Store) Volatile() bool { return true }

// Hold implements [ctxstore.Holder].
func (s *Store) Hold(uri string) (release func(), err error) { return s.holds.Hold("", uri) }
