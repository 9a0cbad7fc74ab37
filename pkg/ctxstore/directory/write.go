package directory

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
)

// temporary begins the names of files that are being written.
const temporary = ".new-"

// folderChange implements [engine.Txn], with the store locked.
type folderChange struct {
	*folderStorage
	lock  *lock
	found uint64 // the revision of the entry that was found
}

// Update implements [engine.Storage].
func (s *folderStorage) Update(ctx context.Context, _ string, change func(engine.Txn) error) error {
	return s.locked(ctx, func(l *lock) error { return change(&folderChange{folderStorage: s, lock: l}) })
}

// Find implements [engine.Txn]. It reads an entry whole.
func (t *folderChange) Find(uri string) (ctxstore.Info, error) {
	if fp, shape := ctxstore.ParseShapeURI(uri); shape {
		_, err := os.Lstat(t.shapePath(fp))
		return ctxstore.Info{URI: uri, Revision: 1}, fault(uri, t.shapePath(fp), err)
	}
	h, _, err := t.read(uri)
	if errors.Is(err, ctxstore.NotFound) {
		return ctxstore.Info{}, nil
	}
	t.found = h.Revision
	return h.info(), err
}

// Set implements [engine.Txn].
func (t *folderChange) Set(uri string, value []byte, expires time.Time) (uint64, error) {
	path, b, revision := t.entryPath(uri), value, uint64(1)
	fp, shape := ctxstore.ParseShapeURI(uri)
	if shape {
		path = t.shapePath(fp)
	} else {
		revision = max(t.lock.revision, t.found) + 1
		var err error
		if b, err = encode(header{URI: uri, Revision: revision, Expires: expires.UTC().Round(0)}, value); err != nil {
			return 0, &ctxstore.Error{Code: ctxstore.Invalid, URI: uri, Err: err}
		}
	}
	if err := t.makeRoom(t.lock, uri, path, int64(len(b))); err != nil {
		return 0, err
	}
	// First the revision, then the value: a crash in between skips a revision, and never gives one
	// twice.
	if !shape {
		t.lock.revision = revision
	}
	if err := t.lock.save(); err != nil {
		return 0, err
	}
	return revision, t.write(t.lock, uri, path, b)
}

// Remove implements [engine.Txn].
func (t *folderChange) Remove(uri string) error {
	path := t.entryPath(uri)
	if fp, shape := ctxstore.ParseShapeURI(uri); shape {
		path = t.shapePath(fp)
	} else if t.found > t.lock.revision {
		t.lock.revision = t.found
		if err := t.lock.save(); err != nil {
			return err
		}
	}
	info, err := os.Lstat(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return fault(uri, path, err)
	}
	if t.lock.used >= 0 {
		t.lock.used = max(0, t.lock.used-info.Size())
		_ = t.lock.save() // otherwise the space counts as taken for a while
	}
	return nil
}

// write puts b at path through a temporary file beside it. If anything fails, what was at path
// stays and nothing else is left.
func (s *folderStorage) write(l *lock, uri, path string, b []byte) (err error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fault(uri, folder, err)
	}
	f, err := os.CreateTemp(folder, temporary) // mode 0600
	if err != nil {
		return fault(uri, folder, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // best effort after a failure that is reported; makeRoom removes what stays
		}
	}()
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	now := s.cfg.Clock.Now()
	if err == nil {
		err = os.Chtimes(f.Name(), now, now)
	}
	if err == nil {
		err = rename(f.Name(), path)
	}
	if err != nil {
		l.forget()
		return fault(uri, path, err)
	}
	return nil
}
