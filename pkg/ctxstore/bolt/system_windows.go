package bolt

import (
	"errors"
	"syscall"
	"time"
)

const (
	errorHandleDiskFull = syscall.Errno(39)
	errorDiskFull       = syscall.Errno(112)
)

func isFull(err error) bool {
	return errors.Is(err, errorDiskFull) || errors.Is(err, errorHandleDiskFull)
}

// lockBeside is for systems whose locks belong to the process; here they belong to the handle.
func lockBeside(string, bool, time.Duration) (unlock func(), err error) { return func() {}, nil }
