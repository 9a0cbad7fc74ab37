package directory

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

const (
	// countEvery is after how many writes the folder is counted again, to see what other processes
	// wrote.
	countEvery = 1024
	// staleAfter is the age at which a temporary file is taken as abandoned.
	staleAfter = time.Hour
)

// room is this process's estimate of the space that the files take, in bytes; negative: not known.
type room struct {
	used   int64
	writes int
}

func (r *room) forget() { r.used = -1 }

type file struct {
	path string
	size int64
	at   time.Time
}

// makeRoom makes space for need bytes at path. It drops expired entries, then the least recently
// used shapes, until a tenth is free.
func (s *Store) makeRoom(uri, path string, need int64) error {
	if info, err := os.Lstat(path); err == nil {
		need -= info.Size()
	}
	r, limit := &s.room, s.cfg.MaxBytes
	if r.writes++; r.used >= 0 && r.used+need <= limit && r.writes%countEvery != 0 {
		r.used += need
		return nil
	}
	shapes, mutable, err := s.count(path)
	if err != nil {
		return err
	}
	if mutable+need > limit {
		r.forget()
		return &ctxstore.Error{Code: ctxstore.Full, URI: uri, At: s.dir,
			Err:  fmt.Errorf("%d more bytes, the limit is %d", need, limit),
			Hint: "raise the limit, delete contexts, or name another folder"}
	}
	r.used = mutable
	for _, f := range shapes {
		r.used += f.size
	}
	if r.used+need > limit {
		s.evict(shapes, path, limit-limit/10-need)
	}
	r.used += need
	return nil
}

// evict removes shapes, the least recently used first, until at most target bytes are used; never
// the one about to be written.
func (s *Store) evict(shapes []file, keep string, target int64) {
	slices.SortFunc(shapes, func(a, b file) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(a.path, b.path))
	})
	for _, f := range shapes {
		if s.room.used <= target {
			return
		}
		if f.path != keep && os.Remove(f.path) == nil {
			s.room.used -= f.size
		}
	}
}

// count counts all files, and removes expired entries (except keep) and the leftovers of crashes.
func (s *Store) count(keep string) (shapes []file, mutable int64, err error) {
	for _, folder := range []string{shapesDir, sessionsDir, contextsDir} {
		files, err := s.files(folder)
		if err != nil {
			return nil, 0, err
		}
		for _, f := range files {
			switch {
			case strings.HasPrefix(filepath.Base(f.path), temporary):
				if s.cfg.Clock.Since(f.at) > staleAfter {
					_ = os.Remove(f.path) // counted again next time if it stays
				}
				mutable += f.size
			case folder == shapesDir:
				shapes = append(shapes, f)
			default:
				if h, err := readHeader(f.path); err == nil && s.expired(h) && f.path != keep &&
					os.Remove(f.path) == nil {
					continue
				}
				mutable += f.size
			}
		}
	}
	return shapes, mutable, nil
}

// files lists the regular files of a folder; none if it is missing.
func (s *Store) files(folder string) ([]file, error) {
	path := filepath.Join(s.dir, folder)
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault("", path, err)
	}
	var list []file
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // gone meanwhile, or not a file of the store
		}
		list = append(list, file{filepath.Join(path, e.Name()), info.Size(), info.ModTime()})
	}
	return list, nil
}

// list returns the live entries under prefix, ordered by URI, and the errors for those that could
// not be read.
func (s *Store) list(prefix string) (list []ctxstore.Info, failed []error) {
	for _, part := range []struct{ folder, begins string }{
		{shapesDir, ctxstore.ShapePrefix}, {sessionsDir, ctxstore.SessionPrefix}, {contextsDir, ""},
	} {
		if !strings.HasPrefix(part.begins, prefix) && !strings.HasPrefix(prefix, part.begins) {
			continue
		}
		files, err := s.files(part.folder)
		if err != nil {
			failed = append(failed, err)
		}
		for _, f := range files {
			i, ok, err := s.info(part.folder, f)
			if err != nil {
				failed = append(failed, err)
			} else if ok && strings.HasPrefix(i.URI, prefix) {
				list = append(list, i)
			}
		}
	}
	slices.SortFunc(list, func(a, b ctxstore.Info) int { return strings.Compare(a.URI, b.URI) })
	return list, failed
}

// info reads the header of a file; not ok if it is no file of the store, expired, or gone.
func (s *Store) info(folder string, f file) (i ctxstore.Info, ok bool, err error) {
	name := filepath.Base(f.path)
	if digits, err := hex.DecodeString(name); err != nil || len(digits) != 32 {
		return i, false, nil
	}
	if folder == shapesDir {
		return ctxstore.Info{URI: ctxstore.ShapePrefix + name, Revision: 1, Size: f.size}, true, nil
	}
	h, err := readHeader(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return i, false, nil
	}
	if err == nil && s.entryPath(h.URI) != f.path {
		err = corrupt(h.URI, f.path, fmt.Errorf("it is the context %q", h.URI))
	}
	if err != nil {
		return i, false, err
	}
	return ctxstore.Info{URI: h.URI, Revision: h.Revision, Size: h.Size, Expires: h.Expires}, !s.expired(h), nil
}
