package directory

import (
	"errors"
	"os"
	"syscall"
	"time"
)

const (
	errorSharingViolation = syscall.Errno(32)
	errorHandleDiskFull   = syscall.Errno(39)
	errorDiskFull         = syscall.Errno(112)
)

var fullErrors = []error{errorDiskFull, errorHandleDiskFull}

// lockedFile opens the lock file for exclusive use, until it is closed or the process ends.
func lockedFile(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errorSharingViolation) {
		return nil, errHeld
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// rename atomically replaces to with from. A reader that has to open blocks that for a moment: then
// rename tries again.
func rename(from, to string) error {
	for wait := time.Millisecond; ; wait *= 2 {
		err := os.Rename(from, to)
		busy := errors.Is(err, errorSharingViolation) || errors.Is(err, os.ErrPermission)
		if !busy || wait > time.Second {
			return err
		}
		time.Sleep(wait)
	}
}
