//go:build unix

package directory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

var fullErrors = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}

// lockedFile opens the lock file and locks it, until it is closed or the process ends.
func lockedFile(path string) (*os.File, error) {
	const attempts = 10 // for a file that is removed again and again
	for n := 1; ; n++ {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && stillThere(f) {
			return f, nil
		}
		f.Close()
		switch {
		case (err == nil || errors.Is(err, syscall.EINTR)) && n < attempts:
		case err == nil, errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
			return nil, fmt.Errorf("lock: %w", errHeld)
		default:
			return nil, fmt.Errorf("lock: %w", err)
		}
	}
}

// stillThere returns false if the file was removed, and perhaps made again, between opening and
// locking it.
func stillThere(f *os.File) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.Name())
	return err == nil && os.SameFile(mine, there)
}

// rename atomically replaces to with from, and returns when that survives a loss of power.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(to))
	if err != nil {
		return nil //nolint:nilerr // the new file is in place; a folder that cannot be read cannot be synced either
	}
	defer d.Close()
	_ = d.Sync() // some file systems know no sync of folders; the file itself is on the medium
	return nil
}
