//go:build !linux

package clock

import "time"

// rest returns at once: the runtime's timers do the wait.
func rest(time.Duration) {}
