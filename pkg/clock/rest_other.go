//go:build !linux

package clock

import "time"

// rest leaves it to the runtime's timers.
func rest(time.Duration) {}
