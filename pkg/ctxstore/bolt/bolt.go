// Package bolt is the context store in one file, for one process at a time: a B+tree of pages
// (bbolt) with a commit to the medium for every change. All stores that one process opens on a file
// share its one handle.
//
// The file never shrinks: the space of dropped entries is used for new ones.
package bolt

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/follow"
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

// Store implements [ctxstore.Store].
type Store struct {
	cfg  Config
	file *sharedFile

	open   context.Context // done once the store is closed
	shut   context.CancelFunc
	mu     sync.RWMutex // read-locked by operations, write-locked by Close
	active sync.WaitGroup
	once   sync.Once
	closed error // the result of Close
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
	s := &Store{cfg: cfg, file: f}
	s.open, s.shut = context.WithCancel(context.Background())
	return s, nil
}

// Get implements [ctxstore.Store].
func (s *Store) Get(ctx context.Context, uri string) (e ctxstore.Entry, err error) {
	if err := ctxstore.CheckURI(uri); err != nil {
		return e, err
	}
	err = s.view(ctx, uri, func(t *tx) error {
		r, value, err := t.find(uri)
		if err != nil {
			return err
		}
		if r == nil {
			return &ctxstore.Error{Code: ctxstore.NotFound, URI: uri, At: s.file.path}
		}
		e = ctxstore.Entry{Value: append([]byte{}, value...), Revision: r.revision, Expires: r.expires}
		return r.check(uri, value)
	})
	if err != nil {
		return ctxstore.Entry{}, err
	}
	if _, shape := ctxstore.ParseShapeURI(uri); shape {
		s.file.touch(uri)
	}
	return e, nil
}

// Has reports whether there is an entry; see [ctxstore.Has].
func (s *Store) Has(ctx context.Context, uri string) (has bool, err error) {
	if err := ctxstore.CheckURI(uri); err != nil {
		return false, err
	}
	err = s.view(ctx, uri, func(t *tx) error {
		r, _, err := t.find(uri)
		has = r != nil
		return err
	})
	return has, err
}

// Put implements [ctxstore.Store].
func (s *Store) Put(
	ctx context.Context, uri string, value []byte, opt ctxstore.PutOptions,
) (revision uint64, err error) {
	if err := ctxstore.CheckPut(uri, value, opt); err != nil {
		return 0, err
	}
	if _, shape := ctxstore.ParseShapeURI(uri); shape {
		return 1, s.putShape(ctx, uri, value)
	}
	var expires time.Time
	if opt.TTL > 0 {
		expires = s.cfg.Clock.Now().Add(opt.TTL)
	}
	err = s.update(ctx, uri, func(t *tx) (err error) {
		revision, err = t.replace(uri, value, opt.IfRevision, func(*record) time.Time { return expires })
		return err
	})
	return revision, err
}

// putShape stores a shape, unless it is there and intact.
func (s *Store) putShape(ctx context.Context, uri string, value []byte) error {
	if !s.cfg.ReadOnly {
		if _, err := s.Get(ctx, uri); err == nil {
			return nil
		}
	}
	return s.update(ctx, uri, func(t *tx) error { return t.put(uri, record{revision: 1}, value) })
}

// Commit implements [ctxstore.Store].
func (s *Store) Commit(ctx context.Context, uri string, expect uint64, value []byte) (revision uint64, err error) {
	if err := ctxstore.CheckCommit(uri, value); err != nil {
		return 0, err
	}
	err = s.update(ctx, uri, func(t *tx) (err error) {
		revision, err = t.replace(uri, value, &expect, func(before *record) time.Time {
			if before == nil {
				return time.Time{}
			}
			return before.expires
		})
		return err
	})
	return revision, err
}

// Delete implements [ctxstore.Store].
func (s *Store) Delete(ctx context.Context, uri string, ifRevision *uint64) error {
	if err := ctxstore.CheckURI(uri); err != nil {
		return err
	}
	return s.update(ctx, uri, func(t *tx) error {
		r, _, err := t.find(uri)
		switch {
		case err != nil && ifRevision != nil:
			return err
		case err == nil && r == nil:
			return &ctxstore.Error{Code: ctxstore.NotFound, URI: uri, At: s.file.path}
		case err == nil && ifRevision != nil && r.revision != *ifRevision:
			return conflict(uri, *ifRevision, r.revision)
		}
		return t.remove(uri)
	})
}

// List implements [ctxstore.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	return func(yield func(ctxstore.Info, error) bool) {
		var list []ctxstore.Info
		var failed []error
		err := s.view(ctx, "", func(t *tx) error {
			list, failed = t.list(prefix)
			return nil
		})
		if err != nil {
			failed = append(failed, err)
		}
		for _, err := range failed {
			if !yield(ctxstore.Info{}, err) {
				return
			}
		}
		for _, i := range list {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// Watch implements [ctxstore.Store]. Changes are reported at once, since no other process can make
// any. Expired values are reported with the next change.
func (s *Store) Watch(ctx context.Context, prefix string) (<-chan ctxstore.Change, error) {
	wake := make(chan struct{}, 1)
	s.file.watch(wake)
	known, err := s.revisions(ctx, prefix)
	if err != nil {
		s.file.unwatch(wake)
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.open.Err() != nil {
		s.file.unwatch(wake)
		return nil, s.ready(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan ctxstore.Change)
	s.active.Go(func() {
		defer s.file.unwatch(wake)
		defer cancel()
		defer context.AfterFunc(s.open, cancel)()
		follow.Run(ctx, known, wake,
			func(ctx context.Context) (map[string]uint64, error) { return s.revisions(ctx, prefix) }, out)
	})
	return out, nil
}

func (s *Store) revisions(ctx context.Context, prefix string) (map[string]uint64, error) {
	m := map[string]uint64{}
	err := s.view(ctx, "", func(t *tx) error {
		list, _ := t.list(prefix)
		for _, i := range list {
			m[i.URI] = i.Revision
		}
		return nil
	})
	return m, err
}

// Close implements [ctxstore.Store]. The last store on a file closes it, and releases the lock.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.shut()
		s.active.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed = process.close(s.file)
	})
	return s.closed
}

func (s *Store) ready(ctx context.Context) error {
	if s.open.Err() != nil {
		return &ctxstore.Error{Code: ctxstore.Closed, At: s.file.path}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// view reads a consistent state.
func (s *Store) view(ctx context.Context, uri string, do func(*tx) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.file.transaction(uri, false, s.cfg, do)
}

// update changes the file: either everything that do does, or nothing.
func (s *Store) update(ctx context.Context, uri string, do func(*tx) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	if s.cfg.ReadOnly {
		return &ctxstore.Error{
			Code: ctxstore.Permission,
			URI:  uri,
			At:   s.file.path,
			Err:  errors.New("opened for reading only"),
		}
	}
	return s.file.transaction(uri, true, s.cfg, do)
}

// Hold implements [ctxstore.Holder]. It needs no lock of the system: other processes cannot open
// the file.
func (s *Store) Hold(uri string) (release func(), err error) {
	return s.file.holds.Hold(s.file.path, uri)
}
