//go:build unix

package clock

import (
	"syscall"
	"time"
)

// Processor returns the processor time of this process so far, on all processors; below 0 where the
// system does not report it.
func Processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return -1
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
