//go:build unix

package clock

import (
	"syscall"
	"time"
)

// Processor is what this process has computed so far, on all processors; below 0 where the system
// does not tell.
func Processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return -1
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
