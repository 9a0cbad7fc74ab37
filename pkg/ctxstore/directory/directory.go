// Package directory is the context store in a folder, shared by all processes of a user:
//
//	shapes/HEX      one serialization per fingerprint, immutable, checked when it is read
//	sessions/HEX    one session each, under SHA-256 of its URI, with a header line that names it
//	contexts/HEX    everything else, likewise
//	holds/HEX       empty; locked by the holder of the entry with that name
//	lock            locked while something is written; contains the last revision given, the space
//	                taken, and the writes until that is counted again
//
// Files are written under another name and renamed, with mode 0600. So a reader needs no lock and
// sees the old value or the new one, also after a crash. A copy of the folder is a store as well.
package directory

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/follow"
)

// Config of a store. The zero value works.
type Config struct {
	// ReadOnly opens a folder that must exist, and writes nothing in it; Put, Commit and Delete
	// fail with [ctxstore.Permission].
	ReadOnly bool
	// MaxBytes is the space for all files together, in bytes; 0 means [ctxstore.DefaultMaxBytes].
	// Beyond it the least recently used shapes are dropped; when there are none left, Put fails
	// with [ctxstore.Full]. The space is known from what was written, and counted again only now
	// and then.
	MaxBytes int64
	// Clock is the clock for times to live and polling; nil means the machine's.
	Clock clock.Clock
	// Poll is the interval at which a watch reads the folder; 0 means a second.
	Poll time.Duration
}

// Store implements [ctxstore.Store].
type Store struct {
	dir string
	cfg Config

	gate   chan struct{} // one writer at a time in this process; the lock file keeps the other processes out
	mu     sync.Mutex    // guards the start of watches against Close
	open   context.Context
	shut   context.CancelFunc
	active sync.WaitGroup
}

var (
	_ ctxstore.Store  = (*Store)(nil)
	_ ctxstore.Holder = (*Store)(nil)
)

// Open opens the store in dir, and makes the folder (mode 0700) if it is missing. Errors:
// [ctxstore.Invalid] if something other than a folder is there, [ctxstore.Permission] if it cannot
// be written, [ctxstore.NotFound] if it is missing and cfg.ReadOnly.
func Open(dir string, cfg Config) (*Store, error) {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = ctxstore.DefaultMaxBytes
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	if cfg.Poll <= 0 {
		cfg.Poll = time.Second
	}
	if dir == "" {
		return nil, &ctxstore.Error{Code: ctxstore.Invalid, Err: errors.New("no folder named")}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fault("", dir, err)
	}
	s := &Store{dir: dir, cfg: cfg, gate: make(chan struct{}, 1)}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	s.open, s.shut = context.WithCancel(context.Background())
	return s, nil
}

// prepare finds out at opening, and not with the first message, what will not work.
func (s *Store) prepare() error {
	info, err := os.Stat(s.dir)
	switch {
	case err == nil && !info.IsDir():
		return &ctxstore.Error{Code: ctxstore.Invalid, At: s.dir, Err: errors.New("not a folder"),
			Hint: "a store is a folder: name another path, or move the file away"}
	case err != nil && (s.cfg.ReadOnly || !errors.Is(err, os.ErrNotExist)):
		return fault("", s.dir, err)
	case s.cfg.ReadOnly:
		_, err := os.ReadDir(s.dir)
		return fault("", s.dir, err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fault("", s.dir, err)
	}
	f, err := s.tryLock()
	if errors.Is(err, errHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	return fault("", f.Name(), f.Close())
}

// Get implements [ctxstore.Store].
func (s *Store) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	if err := ctxstore.CheckURI(uri); err != nil {
		return ctxstore.Entry{}, err
	}
	if err := s.ready(ctx); err != nil {
		return ctxstore.Entry{}, err
	}
	if fp, shape := ctxstore.ParseShapeURI(uri); shape {
		value, err := s.readShape(uri, fp)
		return ctxstore.Entry{Value: value, Revision: 1}, err
	}
	h, value, err := s.read(uri)
	if err != nil {
		return ctxstore.Entry{}, err
	}
	if s.expired(h) {
		return ctxstore.Entry{}, &ctxstore.Error{Code: ctxstore.NotFound, URI: uri, At: s.dir}
	}
	return ctxstore.Entry{Value: value, Revision: h.Revision, Expires: h.Expires}, nil
}

// Has reports whether there is an entry; see [ctxstore.Has].
func (s *Store) Has(ctx context.Context, uri string) (bool, error) {
	if err := ctxstore.CheckURI(uri); err != nil {
		return false, err
	}
	if err := s.ready(ctx); err != nil {
		return false, err
	}
	if fp, shape := ctxstore.ParseShapeURI(uri); shape {
		return s.exists(uri, s.shapePath(fp))
	}
	h, err := readHeader(s.entryPath(uri))
	if errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
		return false, nil
	}
	return err == nil && !s.expired(h), err
}

// Put implements [ctxstore.Store]. A file that is corrupt is replaced by a Put without condition.
func (s *Store) Put(ctx context.Context, uri string, value []byte, opt ctxstore.PutOptions) (uint64, error) {
	if err := ctxstore.CheckPut(uri, value, opt); err != nil {
		return 0, err
	}
	if err := s.writable(ctx, uri); err != nil {
		return 0, err
	}
	if fp, shape := ctxstore.ParseShapeURI(uri); shape {
		return 1, s.putShape(ctx, uri, fp, value)
	}
	return s.replace(ctx, uri, value, opt.IfRevision, func(header) time.Time {
		if opt.TTL == 0 {
			return time.Time{}
		}
		return s.cfg.Clock.Now().Add(opt.TTL).UTC().Round(0)
	})
}

// Commit implements [ctxstore.Store].
func (s *Store) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	if err := ctxstore.CheckCommit(uri, value); err != nil {
		return 0, err
	}
	if err := s.writable(ctx, uri); err != nil {
		return 0, err
	}
	return s.replace(ctx, uri, value, &expect, func(before header) time.Time { return before.Expires })
}

// Delete implements [ctxstore.Store].
func (s *Store) Delete(ctx context.Context, uri string, ifRevision *uint64) error {
	if err := ctxstore.CheckURI(uri); err != nil {
		return err
	}
	if err := s.writable(ctx, uri); err != nil {
		return err
	}
	return s.locked(ctx, func(l *lock) error { return s.remove(l, uri, ifRevision) })
}

// List implements [ctxstore.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	return func(yield func(ctxstore.Info, error) bool) {
		if err := s.ready(ctx); err != nil {
			yield(ctxstore.Info{}, err)
			return
		}
		list, failed := s.list(prefix)
		for _, err := range failed {
			if !yield(ctxstore.Info{}, err) {
				return
			}
		}
		for _, i := range list {
			if err := s.ready(ctx); err != nil {
				yield(ctxstore.Info{}, err)
				return
			}
			if !yield(i, nil) {
				return
			}
		}
	}
}

// Watch implements [ctxstore.Store]. It reads the folder every Config.Poll; entries that cannot be
// read are left out.
func (s *Store) Watch(ctx context.Context, prefix string) (<-chan ctxstore.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	look := func(context.Context) (map[string]uint64, error) {
		list, failed := s.list(prefix)
		m := make(map[string]uint64, len(list))
		for _, i := range list {
			m[i.URI] = i.Revision
		}
		if len(failed) > 0 && len(list) == 0 {
			return nil, failed[0]
		}
		return m, nil
	}
	known, err := look(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	tick, out := make(chan struct{}), make(chan ctxstore.Change)
	s.active.Go(func() {
		defer cancel()
		defer context.AfterFunc(s.open, cancel)()
		follow.Run(ctx, known, tick, look, out)
	})
	s.active.Go(func() {
		for s.cfg.Clock.Sleep(ctx, s.cfg.Poll) == nil {
			select {
			case tick <- struct{}{}:
			case <-ctx.Done():
			}
		}
	})
	return out, nil
}

// Close implements [ctxstore.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	s.shut()
	s.mu.Unlock()
	s.active.Wait()
	return nil
}

func (s *Store) ready(ctx context.Context) error {
	if s.open.Err() != nil {
		return &ctxstore.Error{Code: ctxstore.Closed, At: s.dir}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (s *Store) writable(ctx context.Context, uri string) error {
	if s.cfg.ReadOnly {
		return &ctxstore.Error{
			Code: ctxstore.Permission,
			URI:  uri,
			At:   s.dir,
			Err:  errors.New("opened for reading only"),
		}
	}
	return s.ready(ctx)
}
