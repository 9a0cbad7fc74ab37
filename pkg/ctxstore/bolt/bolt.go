// Package bolt is the context store in one file, for one process at a time: a B+tree of pages
// (bbolt) with a commit to the medium for every change. All stores that one process opens on a file
// share its one handle.
//
// The file never shrinks: the space of dropped entries is used for new ones.
package bolt

import (
	"context"
	"errors"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
)

// Config of a store. The zero value works.
type Config struct {
	// ReadOnly opens a file that must exist, and writes nothing; Put, Commit and Delete fail with
	// [ctxstore.Permission]. Several processes can read a file that none writes.
	ReadOnly bool
	// MaxBytes is the space for URIs and values together, in bytes; 0 means
	// [ctxstore.DefaultMaxBytes]. Beyond it the least recently used shapes are dropped; when there
	// are none left, Put fails with [ctxstore.Full]. The file is larger: pages are not always full.
	MaxBytes int64
	// Clock is the clock for times to live; nil means the machine's. Waiting for the lock uses real
	// time.
	Clock clock.Clock
}

type inFile = engine.Store

// Store implements [ctxstore.Store]. Its watches report changes at once, since no other process can
// make any, and expired values with the next change.
type Store struct {
	*inFile
	file *sharedFile
}

var (
	_ ctxstore.Store  = (*Store)(nil)
	_ ctxstore.Holder = (*Store)(nil)
)

// Open opens the store in the file at path, and makes the file (mode 0600, its folder 0700) if it
// is missing. A lock held by another process is [ctxstore.Unavailable] after one second. Other
// errors: [ctxstore.NotFound] if the file is missing and cfg.ReadOnly, [ctxstore.Corrupt] if it is
// not a file of this format, [ctxstore.Permission] if it may not be opened.
func Open(path string, cfg Config) (*Store, error) {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = ctxstore.DefaultMaxBytes
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	if path == "" {
		return nil, &ctxstore.Error{Code: ctxstore.Invalid, Err: errors.New("no file named"), Hint: "write bolt:FILE"}
	}
	f, err := process.open(path, cfg.ReadOnly)
	if err != nil {
		return nil, err
	}
	access := engine.NewAccess(f.path)
	if cfg.ReadOnly {
		access.Locked = engine.ForReading
	}
	s := engine.New(access, &fileStorage{cfg: cfg, file: f}, engine.Config{Clock: cfg.Clock, Changes: &f.changes})
	return &Store{inFile: s, file: f}, nil
}

// Hold implements [ctxstore.Holder]. It needs no lock of the system: other processes cannot open
// the file.
func (s *Store) Hold(uri string) (release func(), err error) {
	return s.file.holds.Hold(s.file.path, uri)
}

// fileStorage implements [engine.Storage].
type fileStorage struct {
	cfg  Config
	file *sharedFile
}

func (m *fileStorage) Get(uri string) (e ctxstore.Entry, err error) {
	err = m.file.transaction(uri, false, m.cfg, func(t *tx) error {
		r, value, err := t.find(uri)
		if err != nil {
			return err
		}
		if r == nil {
			return &ctxstore.Error{Code: ctxstore.NotFound, URI: uri, At: m.file.path}
		}
		e = ctxstore.Entry{Value: append([]byte{}, value...), Revision: r.revision, Expires: r.expires}
		return r.check(uri, value)
	})
	if _, shape := ctxstore.ParseShapeURI(uri); err == nil && shape {
		m.file.touch(uri)
	}
	return e, err
}

func (m *fileStorage) Find(uri string) (i ctxstore.Info, err error) {
	err = m.file.transaction(uri, false, m.cfg, func(t *tx) error {
		i, err = t.Find(uri)
		return err
	})
	return i, err
}

func (m *fileStorage) List(prefix string) (list []ctxstore.Info, failed []error) {
	err := m.file.transaction("", false, m.cfg, func(t *tx) error {
		list, failed = t.list(prefix)
		return nil
	})
	if err != nil {
		failed = append(failed, err)
	}
	return list, failed
}

func (m *fileStorage) Update(_ context.Context, uri string, change func(engine.Txn) error) error {
	return m.file.transaction(uri, true, m.cfg, func(t *tx) error { return change(t) })
}

// Close closes the file after the last store on it, and releases the lock.
func (m *fileStorage) Close() error { return process.close(m.file) }
