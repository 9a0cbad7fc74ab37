//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime is the processor time of this process so far: other programs on the machine do not count.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return time.Since(started)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
