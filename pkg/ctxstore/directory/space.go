package directory

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
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
// It drops expired entries, then shapes.
func (s *folderStorage) makeRoom(l *lock, uri, path string, need int64) error {
	if info, err := os.Lstat(path); err == nil {
		need -= info.Size()
	}
	space := engine.Space{At: s.dir, URI: uri, Max: s.cfg.MaxBytes, Need: need,
		Hint: "delete contexts, or name another folder"}
	if l.due--; l.used >= 0 && space.Fits(l.used) && l.due > 0 {
		l.used = max(0, l.used+need)
		return nil
	}
	shapes, others, files, err := s.count(path)
	if err != nil {
		return err
	}
	l.used, l.due = others+need, int64(max(countEvery, files))
	for _, f := range shapes {
		l.used += f.Size
	}
	err = space.Make(others, shapes, func(f engine.Shape) bool {
		if os.Remove(f.Name) != nil {
			return false
		}
		l.used -= f.Size
		return true
	})
	if err != nil {
		l.forget()
	}
	return err
}

// count counts all files, and removes expired entries (except keep) and the leftovers of crashes.
// A shape at keep is not among those that may be dropped.
func (s *folderStorage) count(keep string) (shapes []engine.Shape, others int64, n int, err error) {
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
					others += f.size
				}
			case folder == shapesDir && f.path != keep:
				shapes = append(shapes, engine.Shape{Name: f.path, Size: f.size, Used: f.at.UnixNano()})
			default:
				if f.path != keep && s.isOver(f.path) && os.Remove(f.path) == nil {
					continue
				}
				others += f.size
			}
		}
	}
	return shapes, others, n, nil
}

// isOver reports whether a file is an entry that expired.
func (s *folderStorage) isOver(path string) bool {
	h, err := readHeader(path)
	return err == nil && engine.Expired(s.cfg.Clock, h.Expires)
}

// files lists the regular files of a folder; none if it is missing.
func (s *folderStorage) files(folder string) ([]file, error) {
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

// List implements [engine.Storage].
func (s *folderStorage) List(prefix string) (list []ctxstore.Info, failed []error) {
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
	return list, failed
}

// info reads the header of a file; not ok if it is no file of the store, or gone.
func (s *folderStorage) info(folder string, f file) (i ctxstore.Info, ok bool, err error) {
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
	return h.info(), true, nil
}
