//go:build !unix

package main

import "time"

// cpuTime is elapsed time where the processor's is not available: measure on an idle machine.
func cpuTime() time.Duration { return time.Since(started) }
