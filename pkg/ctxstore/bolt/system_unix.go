//go:build unix

package bolt

import (
	"errors"
	"os"
	"syscall"
	"time"
)

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// lockBeside locks a file beside path, shared or exclusively, until unlock is called or the process
// ends. It gives up with errLocked after wait.
func lockBeside(path string, shared bool, wait time.Duration) (unlock func(), err error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	const pause = 20 * time.Millisecond
	for {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break
		}
		if err = errLocked; wait <= 0 {
			break
		}
		time.Sleep(pause)
		wait -= pause
	}
	_ = f.Close()
	return nil, err
}
