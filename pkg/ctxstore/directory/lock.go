package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	lockFile = "lock"
	// revisionWidth is the fixed length of a revision in the lock file, in digits: rewriting it
	// never needs new space.
	revisionWidth = 20
	// lockWait is the first pause before another attempt at a lock held by another process;
	// maxLockWait the longest.
	lockWait, maxLockWait = time.Millisecond, 32 * time.Millisecond
)

// lock is the lock file, while it is locked.
type lock struct {
	f        *os.File
	revision uint64 // the last one given
}

// locked runs do while only this process, and in it only this call, may write.
func (s *Store) locked(ctx context.Context, do func(*lock) error) error {
	select {
	case s.gate <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.gate }()
	l, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer l.f.Close() // this releases the lock; nothing is buffered
	return do(l)
}

func (s *Store) acquire(ctx context.Context) (*lock, error) {
	for wait := lockWait; ; wait = min(2*wait, maxLockWait) {
		if err := s.ready(ctx); err != nil {
			return nil, err
		}
		f, err := s.tryLock()
		if err == nil {
			return readLock(f)
		}
		if !errors.Is(err, errHeld) {
			return nil, err
		}
		if err := s.cfg.Clock.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// errHeld: another process, or another Store in this one, has the lock.
var errHeld = errors.New("lock held")

// tryLock takes the lock, or fails with errHeld at once.
func (s *Store) tryLock() (*os.File, error) {
	path := filepath.Join(s.dir, lockFile)
	f, err := lockedFile(path)
	if errors.Is(err, os.ErrNotExist) { // somebody removed the folder
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return nil, fault("", s.dir, err)
		}
		f, err = lockedFile(path)
	}
	if err != nil && !errors.Is(err, errHeld) {
		return nil, fault("", path, err)
	}
	return f, err
}

func readLock(f *os.File) (*lock, error) {
	b := make([]byte, revisionWidth)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		f.Close()
		return nil, fault("", f.Name(), err)
	}
	// A file that is new or damaged counts from 0 on: every write also checks the revision it
	// replaces.
	revision, _ := strconv.ParseUint(strings.TrimSpace(string(b[:n])), 10, 64)
	return &lock{f: f, revision: revision}, nil
}

// give records that revision was given.
func (l *lock) give(revision uint64) error {
	if _, err := l.f.WriteAt(fmt.Appendf(nil, "%0*d\n", revisionWidth, revision), 0); err != nil {
		return fault("", l.f.Name(), err)
	}
	l.revision = revision
	return nil
}
