//go:build unix

package main

import (
	"runtime"
	"syscall"
	"time"
)

// residentPeak is the most memory that this process had, in bytes.
func residentPeak() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" { // in bytes there, else in KiB
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}

// cpuTime is the processor time of this process so far: other programs on the machine do not count.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return time.Since(started)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
