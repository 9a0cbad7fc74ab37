//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime is the processor time this process took so far: what else runs on the machine takes no
// part in it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return time.Since(started)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
