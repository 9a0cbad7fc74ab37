// Package engine is what the stores on this machine have in common: what is checked, in what shapes
// and other entries differ, which revision a change needs, when an entry expires, what is dropped
// where space is short, and watches. A [Storage] has the entries.
package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Storage has the entries of a store, those too that expired. All methods but Close are safe for
// concurrent use. URIs and values were checked.
type Storage interface {
	// Get returns an entry; [ctxstore.NotFound] if there is none. That a shape is used is noted.
	Get(uri string) (ctxstore.Entry, error)
	// Find returns an entry without its value, which need not be intact; of revision 0 if there is
	// none.
	Find(uri string) (ctxstore.Info, error)
	// List returns the entries whose URI begins with prefix, in any order, and the errors of those
	// that cannot be read.
	List(prefix string) ([]ctxstore.Info, []error)
	// Update has one caller at a time change entries. What fails changes nothing.
	Update(ctx context.Context, uri string, change func(Txn) error) error
	// Close is called once, after all other calls.
	Close() error
}

// Txn is one change of one entry.
type Txn interface {
	// Find returns the entry without its value; of revision 0 if there is none, and
	// [ctxstore.Corrupt] if its revision cannot be trusted.
	Find(uri string) (ctxstore.Info, error)
	// Set stores an entry whatever was there; others are dropped where space is short. It returns
	// the revision that it gives the entry: 1 to a shape.
	Set(uri string, value []byte, expires time.Time) (revision uint64, err error)
	// Remove removes an entry that is there.
	Remove(uri string) error
}

// Config of a store.
type Config struct {
	Clock clock.Clock
	// Changes wakes watches. Without it they look every Poll.
	Changes *Changes
	Poll    time.Duration
}

// Store implements [ctxstore.Store].
type Store struct {
	*Access
	cfg     Config
	storage Storage

	mu     sync.RWMutex // read-locked by calls, write-locked by Close
	active sync.WaitGroup
	once   sync.Once
	closed error // the result of Close
}

// New returns the store of a storage.
func New(access *Access, storage Storage, cfg Config) *Store {
	return &Store{Access: access, storage: storage, cfg: cfg}
}

// Get implements [ctxstore.Store].
func (s *Store) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.Readable(ctx, uri); err != nil {
		return ctxstore.Entry{}, err
	}
	e, err := s.storage.Get(uri)
	if err == nil && Expired(s.cfg.Clock, e.Expires) {
		err = s.missing(uri)
	}
	if err != nil {
		return ctxstore.Entry{}, err
	}
	return e, nil
}

// Has reports whether there is an entry; see [ctxstore.Has].
func (s *Store) Has(ctx context.Context, uri string) (bool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.Readable(ctx, uri); err != nil {
		return false, err
	}
	i, err := s.storage.Find(uri)
	return err == nil && s.live(i).Revision != 0, err
}

// Put implements [ctxstore.Store]. An entry that is corrupt is replaced by a Put without condition.
func (s *Store) Put(ctx context.Context, uri string, value []byte, opt ctxstore.PutOptions) (uint64, error) {
	if err := ctxstore.CheckPut(uri, value, opt); err != nil {
		return 0, err
	}
	if _, shape := ctxstore.ParseShapeURI(uri); shape {
		return 1, s.putShape(ctx, uri, value)
	}
	expires := Expiry(s.cfg.Clock, opt.TTL)
	return s.replace(ctx, uri, value, opt.IfRevision, func(ctxstore.Info) time.Time { return expires })
}

// putShape stores a shape, unless it is there and intact.
func (s *Store) putShape(ctx context.Context, uri string, value []byte) error {
	return s.change(ctx, uri, func() error {
		_, err := s.storage.Get(uri)
		if !errors.Is(err, ctxstore.NotFound) && !errors.Is(err, ctxstore.Corrupt) {
			return err
		}
		return s.storage.Update(ctx, uri, func(t Txn) error {
			_, err := t.Set(uri, value, time.Time{})
			return err
		})
	})
}

// Commit implements [ctxstore.Store].
func (s *Store) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	if err := ctxstore.CheckCommit(uri, value); err != nil {
		return 0, err
	}
	return s.replace(ctx, uri, value, &expect, func(before ctxstore.Info) time.Time { return before.Expires })
}

// replace stores the next value of a mutable entry.
func (s *Store) replace(ctx context.Context, uri string, value []byte, ifRevision *uint64,
	expires func(before ctxstore.Info) time.Time) (revision uint64, err error) {
	err = s.change(ctx, uri, func() error {
		return s.storage.Update(ctx, uri, func(t Txn) error {
			before, _, err := s.expect(t, uri, ifRevision)
			if err == nil {
				revision, err = t.Set(uri, value, expires(before))
			}
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	return revision, nil
}

// expect returns the entry as it is before a change; of revision 0 if there is none, or it expired.
// Its revision must be the one that is given. One that is damaged can be changed if none is.
func (s *Store) expect(t Txn, uri string, ifRevision *uint64) (before ctxstore.Info, damaged bool, err error) {
	before, err = t.Find(uri)
	if ifRevision == nil && errors.Is(err, ctxstore.Corrupt) {
		return ctxstore.Info{}, true, nil
	}
	if err != nil {
		return before, false, err
	}
	before = s.live(before)
	if ifRevision != nil && *ifRevision != before.Revision {
		err = &ctxstore.Error{
			Code: ctxstore.Conflict,
			URI:  uri,
			At:   s.At,
			Err:  fmt.Errorf("expected revision %d, found %d", *ifRevision, before.Revision),
		}
	}
	return before, false, err
}

// Delete implements [ctxstore.Store].
func (s *Store) Delete(ctx context.Context, uri string, ifRevision *uint64) error {
	return s.change(ctx, uri, func() error {
		return s.storage.Update(ctx, uri, func(t Txn) error {
			before, damaged, err := s.expect(t, uri, ifRevision)
			if before.Revision == 0 && !damaged && (err == nil || errors.Is(err, ctxstore.Conflict)) {
				err = s.missing(uri)
			}
			if err == nil {
				err = t.Remove(uri)
			}
			return err
		})
	})
}

// change runs a function that changes the store.
func (s *Store) change(ctx context.Context, uri string, change func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.Writable(ctx, uri); err != nil {
		return err
	}
	return change()
}

// live is an entry unless it expired.
func (s *Store) live(i ctxstore.Info) ctxstore.Info {
	if Expired(s.cfg.Clock, i.Expires) {
		return ctxstore.Info{}
	}
	return i
}

func (s *Store) missing(uri string) error {
	return &ctxstore.Error{Code: ctxstore.NotFound, URI: uri, At: s.At}
}

// List implements [ctxstore.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	return func(yield func(ctxstore.Info, error) bool) {
		list, failed, err := s.list(ctx, prefix)
		if err != nil {
			failed = append(failed, err)
		}
		for _, err := range failed {
			if !yield(ctxstore.Info{}, err) {
				return
			}
		}
		slices.SortFunc(list, func(a, b ctxstore.Info) int { return strings.Compare(a.URI, b.URI) })
		for _, i := range list {
			if err := s.Usable(ctx); err != nil {
				yield(ctxstore.Info{}, err)
				return
			}
			if !yield(i, nil) {
				return
			}
		}
	}
}

// list returns the entries that live, and why others cannot be read.
func (s *Store) list(ctx context.Context, prefix string) (list []ctxstore.Info, failed []error, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.Usable(ctx); err != nil {
		return nil, nil, err
	}
	list, failed = s.storage.List(prefix)
	return slices.DeleteFunc(list, func(i ctxstore.Info) bool { return Expired(s.cfg.Clock, i.Expires) }), failed, nil
}

// Watch implements [ctxstore.Store]. Entries that cannot be read are left out. Expired values are
// reported with the next change.
func (s *Store) Watch(ctx context.Context, prefix string) (<-chan ctxstore.Change, error) {
	ctx, cancel := context.WithCancel(ctx)
	wake := make(chan struct{}, 1)
	forget := func() {}
	if s.cfg.Changes != nil {
		forget = s.cfg.Changes.add(wake)
	}
	look := func(ctx context.Context) (map[string]uint64, error) { return s.revisions(ctx, prefix) }
	known, err := look(ctx)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err == nil {
		err = s.Usable(ctx)
	}
	if err != nil {
		forget()
		cancel()
		return nil, err
	}
	out := make(chan ctxstore.Change)
	s.active.Go(func() {
		defer forget()
		defer cancel()
		defer context.AfterFunc(s.Open, cancel)()
		Follow(ctx, known, wake, look, out)
	})
	if s.cfg.Changes == nil {
		s.active.Go(func() {
			for s.cfg.Clock.Sleep(ctx, s.cfg.Poll) == nil {
				signal(wake)
			}
		})
	}
	return out, nil
}

// revisions returns those of the entries that can be read; an error if there are none since the
// storage failed.
func (s *Store) revisions(ctx context.Context, prefix string) (map[string]uint64, error) {
	list, failed, err := s.list(ctx, prefix)
	if err == nil && len(list) == 0 {
		for _, f := range failed {
			if !errors.Is(f, ctxstore.Corrupt) {
				err = errors.Join(err, f)
			}
		}
	}
	m := make(map[string]uint64, len(list))
	for _, i := range list {
		m[i.URI] = i.Revision
	}
	return m, err
}

// Close implements [ctxstore.Store].
func (s *Store) Close() error {
	s.once.Do(func() {
		s.Shut()
		s.mu.Lock() // no call is running, and none begins
		s.closed = s.storage.Close()
		s.mu.Unlock()
		s.active.Wait()
	})
	return s.closed
}
