//go:build !unix

package main

import (
	"runtime"
	"time"
)

// cpuTime is elapsed time where the processor's is not available: measure on an idle machine.
func cpuTime() time.Duration { return time.Since(started) }

// residentPeak is the memory that this process has from the system, in bytes.
func residentPeak() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}
