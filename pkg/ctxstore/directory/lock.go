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
	// numberWidth is the fixed length of a number in the lock file, in digits: rewriting it never
	// needs new space.
	numberWidth = 20
	// lockWait is the first pause before another attempt at a lock held by another process;
	// maxLockWait the longest.
	lockWait, maxLockWait = time.Millisecond, 32 * time.Millisecond
)

// lock is the lock file, while it is locked. Each of its lines is a number.
type lock struct {
	f        *os.File
	revision uint64 // the last one given
	used     int64  // bytes of all files, about; below 0: not known
	due      int64  // writes until the files are counted again
}

// locked runs do while only this process, and in it only this call, may write.
func (s *folderStorage) locked(ctx context.Context, do func(*lock) error) error {
	select {
	case s.writer <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.writer }()
	l, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer l.f.Close() // this releases the lock; nothing is buffered
	return do(l)
}

func (s *folderStorage) acquire(ctx context.Context) (*lock, error) {
	for wait := lockWait; ; wait = min(2*wait, maxLockWait) {
		if err := s.Usable(ctx); err != nil {
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
func (s *folderStorage) tryLock() (*os.File, error) {
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
	b := make([]byte, 3*(numberWidth+1))
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		f.Close()
		return nil, fault("", f.Name(), err)
	}
	l := &lock{f: f, used: -1}
	lines := append(strings.Fields(string(b[:n])), "", "", "")
	// A file that is new or damaged counts from 0 on: every write also checks the revision it
	// replaces.
	l.revision, _ = strconv.ParseUint(lines[0], 10, 64)
	if used, err := strconv.ParseInt(lines[1], 10, 64); err == nil {
		l.used = used
	}
	l.due, _ = strconv.ParseInt(lines[2], 10, 64)
	return l, nil
}

// save writes the numbers into the file.
func (l *lock) save() error {
	b := fmt.Appendf(nil, "%0*d\n%0*d\n%0*d\n", numberWidth, l.revision, numberWidth, l.used, numberWidth, l.due)
	if _, err := l.f.WriteAt(b, 0); err != nil {
		return fault("", l.f.Name(), err)
	}
	return nil
}

// forget has the files counted before the next write.
func (l *lock) forget() {
	l.used = -1
	_ = l.save() // after a failure that is reported: the space is then taken as before it
}
