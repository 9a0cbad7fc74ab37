package directory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// temporary begins the names of files that are being written.
const temporary = ".new-"

// replace writes a mutable entry under the lock; expires receives the header of the entry before.
func (s *Store) replace(
	ctx context.Context, uri string, value []byte, ifRevision *uint64, expires func(header) time.Time,
) (revision uint64, err error) {
	err = s.locked(ctx, func(l *lock) error {
		before, live, err := s.current(uri)
		if err != nil && (ifRevision != nil || !errors.Is(err, &ctxstore.Error{Code: ctxstore.Corrupt})) {
			return err
		}
		if err := s.check(uri, live, ifRevision); err != nil {
			return err
		}
		revision = max(l.revision, before.Revision) + 1
		b, err := encode(header{URI: uri, Revision: revision, Expires: expires(live)}, value)
		if err != nil {
			return &ctxstore.Error{Code: ctxstore.Invalid, URI: uri, Err: err}
		}
		path := s.entryPath(uri)
		if err := s.makeRoom(l, uri, path, int64(len(b))); err != nil {
			return err
		}
		// First the revision, then the value: a crash in between skips a revision, and never gives
		// one twice.
		if err := l.give(revision); err != nil {
			return err
		}
		return s.write(l, uri, path, b)
	})
	if err != nil {
		return 0, err
	}
	return revision, nil
}

// current returns the header stored under uri, and the same header as live unless the entry is
// missing or expired.
func (s *Store) current(uri string) (found, live header, err error) {
	found, _, err = s.read(uri)
	if errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
		return header{}, header{}, nil
	}
	if err != nil || s.expired(found) {
		return found, header{}, err
	}
	return found, found, nil
}

func (s *Store) check(uri string, live header, ifRevision *uint64) error {
	if ifRevision == nil || *ifRevision == live.Revision {
		return nil
	}
	return &ctxstore.Error{Code: ctxstore.Conflict, URI: uri, At: s.dir,
		Err: fmt.Errorf("expected revision %d, found %d", *ifRevision, live.Revision)}
}

// putShape writes a shape that is missing or damaged.
func (s *Store) putShape(ctx context.Context, uri string, fp [32]byte, value []byte) error {
	_, err := s.readShape(uri, fp)
	if err == nil {
		return nil
	}
	if !errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) &&
		!errors.Is(err, &ctxstore.Error{Code: ctxstore.Corrupt}) {
		return err
	}
	return s.locked(ctx, func(l *lock) error {
		path := s.shapePath(fp)
		if err := s.makeRoom(l, uri, path, int64(len(value))); err != nil {
			return err
		}
		if err := l.save(); err != nil {
			return err
		}
		return s.write(l, uri, path, value)
	})
}

func (s *Store) remove(l *lock, uri string, ifRevision *uint64) error {
	path := s.entryPath(uri)
	var live header
	if fp, shape := ctxstore.ParseShapeURI(uri); shape {
		path, live = s.shapePath(fp), header{Revision: 1}
		if _, err := os.Lstat(path); err != nil {
			return fault(uri, path, err)
		}
	} else {
		var found header
		var err error
		found, live, err = s.current(uri)
		damaged := errors.Is(err, &ctxstore.Error{Code: ctxstore.Corrupt}) && ifRevision == nil
		if err != nil && !damaged {
			return err
		}
		if live.Revision == 0 && !damaged {
			return &ctxstore.Error{Code: ctxstore.NotFound, URI: uri, At: s.dir}
		}
		if found.Revision > l.revision {
			if err := l.give(found.Revision); err != nil {
				return err
			}
		}
	}
	if err := s.check(uri, live, ifRevision); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return fault(uri, path, err)
	}
	if l.used >= 0 {
		l.used = max(0, l.used-info.Size())
		_ = l.save() // otherwise the space counts as taken for a while
	}
	return nil
}

// write puts b at path through a temporary file beside it. If anything fails, what was at path
// stays and nothing else is left.
func (s *Store) write(l *lock, uri, path string, b []byte) (err error) {
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
