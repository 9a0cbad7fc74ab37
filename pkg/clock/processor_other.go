//go:build !unix

package clock

import "time"

// Processor returns a value below 0: the time is not known on this system.
func Processor() time.Duration { return -1 }
