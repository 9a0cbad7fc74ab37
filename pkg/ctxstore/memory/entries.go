package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// The functions below are called with the lock held, except for list.

func (s *Store) find(uri string) *storedEntry {
	e := s.entries[uri]
	if e == nil || s.expired(e) {
		return nil
	}
	return e
}

func (s *Store) expired(e *storedEntry) bool {
	return !e.expires.IsZero() && !s.clock.Now().Before(e.expires)
}

func (s *Store) touch(e *storedEntry) {
	s.use++
	e.used = s.use
}

func (s *Store) replace(uri string, value []byte, ifRevision *uint64, expires time.Time) (uint64, error) {
	if ifRevision != nil {
		var have uint64
		if e := s.find(uri); e != nil {
			have = e.revision
		}
		if have != *ifRevision {
			return 0, conflict(uri, *ifRevision, have)
		}
	}
	if err := s.set(uri, value, &storedEntry{revision: s.revision + 1, expires: expires}); err != nil {
		return 0, err
	}
	s.revision++
	return s.revision, nil
}

// set puts an entry with a copy of value.
func (s *Store) set(uri string, value []byte, e *storedEntry) error {
	need := int64(len(uri) + len(value))
	if old := s.entries[uri]; old != nil {
		need -= size(uri, old)
	}
	if err := s.makeRoom(uri, need); err != nil {
		return err
	}
	s.remove(uri)
	s.purge()
	s.touch(e)
	uri, e.value = s.likes.keep(uri, value)
	s.entries[uri] = e
	s.used += size(uri, e)
	s.wake()
	return nil
}

// minPurge is the least number of entries among which those that expired are looked for.
const minPurge = 1024

// purge drops expired entries when there are twice as many entries as after the last time: what it
// costs is little for each entry that was put.
func (s *Store) purge() {
	if s.purgeAt = max(s.purgeAt, minPurge); len(s.entries) < s.purgeAt {
		return
	}
	for uri, e := range s.entries {
		if s.expired(e) {
			s.remove(uri)
		}
	}
	s.purgeAt = 2 * len(s.entries)
}

// makeRoom drops expired entries, then the least recently used shapes, until a tenth is free, of
// the space or of that for shapes, so that not every Put has to.
func (s *Store) makeRoom(uri string, need int64) error {
	ofShapes, mostShapes := int64(0), int64(math.MaxInt64) // with the one that is put
	if _, isShape := ctxstore.ParseShapeURI(uri); isShape {
		ofShapes, mostShapes = need, ctxstore.MaxShapeBytes
	}
	if s.used+need <= min(s.max, mostShapes) {
		return nil
	}
	var shapes []string
	mutable := int64(0)
	for u, e := range s.entries {
		if _, shape := ctxstore.ParseShapeURI(u); shape {
			shapes = append(shapes, u)
			ofShapes += size(u, e)
		} else if u != uri && s.expired(e) {
			s.remove(u)
		} else {
			mutable += size(u, e)
		}
	}
	if mutable+need > s.max {
		return &ctxstore.Error{
			Code: ctxstore.Full,
			URI:  uri,
			Err:  fmt.Errorf("%d more bytes, the limit is %d", need, s.max),
			Hint: "raise the limit (MaxBytes; of hhfr --store-size), or name a store in a file or folder",
		}
	}
	slices.SortFunc(shapes, func(a, b string) int { return cmp.Compare(s.entries[a].used, s.entries[b].used) })
	most := s.max
	if s.used+need > most {
		most -= most / 10
	}
	if ofShapes > mostShapes {
		mostShapes -= mostShapes / 10
	}
	for _, u := range shapes {
		if s.used+need <= most && ofShapes <= mostShapes {
			break
		}
		ofShapes -= size(u, s.entries[u])
		s.remove(u)
	}
	return nil
}

func (s *Store) remove(uri string) {
	if e := s.entries[uri]; e != nil {
		s.used -= size(uri, e)
		delete(s.entries, uri)
	}
}

func (s *Store) list(ctx context.Context, prefix string) ([]ctxstore.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	var list []ctxstore.Info
	for _, uri := range slices.Sorted(maps.Keys(s.revisions(prefix))) {
		e := s.entries[uri]
		list = append(list,
			ctxstore.Info{URI: uri, Revision: e.revision, Size: int64(e.value.len()), Expires: e.expires})
	}
	return list, nil
}

func (s *Store) revisions(prefix string) map[string]uint64 {
	m := map[string]uint64{}
	for uri, e := range s.entries {
		if strings.HasPrefix(uri, prefix) && !s.expired(e) {
			m[uri] = e.revision
		}
	}
	return m
}

func (s *Store) wake() {
	for w := range s.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func size(uri string, e *storedEntry) int64 { return int64(len(uri) + e.value.len()) }

func conflict(uri string, want, have uint64) error {
	return &ctxstore.Error{
		Code: ctxstore.Conflict,
		URI:  uri,
		Err:  fmt.Errorf("expected revision %d, found %d", want, have),
	}
}
