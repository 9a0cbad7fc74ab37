package directory

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

const (
	// countEvery is after how many writes at least the files are counted again, to see what came
	// and went without a write, and expired. In a large folder it is after as many as there are
	// files: so the work of a write does not grow with them.
	countEvery = 1024
	// staleAfter is the age at which a temporary file is taken as abandoned.
	staleAfter = time.Hour
)

type file struct {
	path string
	size int64
	at   time.Time
}

// makeRoom makes space for need bytes at path, and counts them in the lock, which is to be saved.
// It drops expired entries, then the least recently used shapes, until a tenth is free, of the
// space or of that for shapes.
func (s *Store) makeRoom(l *lock, uri, path string, need int64) error {
	if info, err := os.Lstat(path); err == nil {
		need -= info.Size()
	}
	limit := s.cfg.MaxBytes
	ofShapes, mostShapes := int64(0), int64(math.MaxInt64) // with the one that is put
	if _, isShape := ctxstore.ParseShapeURI(uri); isShape {
		ofShapes, mostShapes = need, ctxstore.MaxShapeBytes
	}
	if l.due--; l.used >= 0 && l.used+need <= min(limit, mostShapes) && l.due > 0 {
		l.used = max(0, l.used+need)
		return nil
	}
	shapes, mutable, files, err := s.count(path)
	if err != nil {
		return err
	}
	if mutable+need > limit {
		l.forget()
		return &ctxstore.Error{Code: ctxstore.Full, URI: uri, At: s.dir,
			Err:  fmt.Errorf("%d more bytes, the limit is %d", need, limit),
			Hint: "raise the limit (MaxBytes; of hhfr --store-size), delete contexts, or name another folder"}
	}
	l.used, l.due = mutable, int64(max(countEvery, files))
	for _, f := range shapes {
		l.used += f.size
		ofShapes += f.size
	}
	excess := int64(0)
	if l.used+need > limit {
		excess = l.used + need - (limit - limit/10)
	}
	if ofShapes > mostShapes {
		excess = max(excess, ofShapes-(mostShapes-mostShapes/10))
	}
	if excess > 0 {
		evict(l, shapes, path, l.used-excess)
	}
	l.used += need
	return nil
}

// evict removes shapes, the least recently used first, until at most target bytes are used; never
// the one about to be written.
func evict(l *lock, shapes []file, keep string, target int64) {
	slices.SortFunc(shapes, func(a, b file) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(a.path, b.path))
	})
	for _, f := range shapes {
		if l.used <= target {
			return
		}
		if f.path != keep && os.Remove(f.path) == nil {
			l.used -= f.size
		}
	}
}

// count counts all files, and removes expired entries (except keep) and the leftovers of crashes.
func (s *Store) count(keep string) (shapes []file, mutable int64, n int, err error) {
	for _, folder := range []string{shapesDir, sessionsDir, contextsDir} {
		files, err := s.files(folder)
		if err != nil {
			return nil, 0, 0, err
		}
		n += len(files)
		for _, f := range files {
			switch {
			case strings.HasPrefix(filepath.Base(f.path), temporary):
				if s.cfg.Clock.Since(f.at) <= staleAfter || os.Remove(f.path) != nil {
					mutable += f.size
				}
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
	return shapes, mutable, n, nil
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
