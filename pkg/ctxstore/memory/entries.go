package memory

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
)

// memoryStorage implements [engine.Storage].
type memoryStorage struct {
	max     int64
	clock   clock.Clock
	changes engine.Changes

	mu       sync.Mutex
	byURI    map[string]*storedEntry
	purgeAt  int // number of entries at which those that expired are dropped
	used     int64
	revision uint64 // last one given to a mutable entry
	use      int64  // counts uses, to find the least recently used
	likes    likes
}

type storedEntry struct {
	value    keptValue
	revision uint64
	expires  time.Time
	used     int64
}

func (e *storedEntry) info(uri string) ctxstore.Info {
	return ctxstore.Info{URI: uri, Revision: e.revision, Size: int64(e.value.len()), Expires: e.expires}
}

func (m *memoryStorage) Get(uri string) (ctxstore.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byURI[uri]
	if e == nil {
		return ctxstore.Entry{}, &ctxstore.Error{Code: ctxstore.NotFound, URI: uri}
	}
	m.touch(e)
	return ctxstore.Entry{Value: e.value.bytes(), Revision: e.revision, Expires: e.expires}, nil
}

func (m *memoryStorage) Find(uri string) (ctxstore.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return lockedStorage{m}.Find(uri)
}

func (m *memoryStorage) List(prefix string) (list []ctxstore.Info, _ []error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uri, e := range m.byURI {
		if strings.HasPrefix(uri, prefix) {
			list = append(list, e.info(uri))
		}
	}
	return list, nil
}

func (m *memoryStorage) Update(_ context.Context, _ string, change func(engine.Txn) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := change(lockedStorage{m})
	if err == nil {
		m.changes.Tell()
	}
	return err
}

func (m *memoryStorage) Close() error { return nil }

// lockedStorage is one during a change.
type lockedStorage struct{ *memoryStorage }

// Find implements [engine.Txn].
func (t lockedStorage) Find(uri string) (ctxstore.Info, error) {
	if e := t.byURI[uri]; e != nil {
		return e.info(uri), nil
	}
	return ctxstore.Info{}, nil
}

// Set implements [engine.Txn]. It stores a copy of value.
func (t lockedStorage) Set(uri string, value []byte, expires time.Time) (uint64, error) {
	need := int64(len(uri) + len(value))
	if old := t.byURI[uri]; old != nil {
		need -= size(uri, old)
	}
	if err := t.makeRoom(uri, need); err != nil {
		return 0, err
	}
	t.remove(uri)
	t.purge()
	e := &storedEntry{revision: 1, expires: expires}
	if _, shape := ctxstore.ParseShapeURI(uri); !shape {
		t.revision++
		e.revision = t.revision
	}
	t.touch(e)
	uri, e.value = t.likes.keep(uri, value)
	t.byURI[uri] = e
	t.used += size(uri, e)
	return e.revision, nil
}

// Remove implements [engine.Txn].
func (t lockedStorage) Remove(uri string) error {
	t.remove(uri)
	return nil
}

// The functions below are called with the lock taken.

func (m *memoryStorage) touch(e *storedEntry) {
	m.use++
	e.used = m.use
}

// minPurge is the least number of entries among which those that expired are looked for.
const minPurge = 1024

// purge drops expired entries when there are twice as many entries as after the last time: what it
// costs is little for each entry that was put.
func (m *memoryStorage) purge() {
	if m.purgeAt = max(m.purgeAt, minPurge); len(m.byURI) < m.purgeAt {
		return
	}
	for uri, e := range m.byURI {
		if engine.Expired(m.clock, e.expires) {
			m.remove(uri)
		}
	}
	m.purgeAt = 2 * len(m.byURI)
}

// makeRoom drops expired entries, then shapes.
func (m *memoryStorage) makeRoom(uri string, need int64) error {
	space := engine.Space{URI: uri, Max: m.max, Need: need, Hint: "or name a store in a file or folder"}
	if space.Fits(m.used) {
		return nil
	}
	var shapes []engine.Shape
	others := int64(0)
	for u, e := range m.byURI {
		if _, shape := ctxstore.ParseShapeURI(u); shape {
			shapes = append(shapes, engine.Shape{Name: u, Size: size(u, e), Used: e.used})
		} else if u != uri && engine.Expired(m.clock, e.expires) {
			m.remove(u)
		} else {
			others += size(u, e)
		}
	}
	return space.Make(others, shapes, func(s engine.Shape) bool {
		m.remove(s.Name)
		return true
	})
}

func (m *memoryStorage) remove(uri string) {
	if e := m.byURI[uri]; e != nil {
		m.used -= size(uri, e)
		delete(m.byURI, uri)
	}
}

func size(uri string, e *storedEntry) int64 { return int64(len(uri) + e.value.len()) }
