package sdnotify

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the microseconds of CLOCK_MONOTONIC, by which a manager tells an answer to this
// reload from one to an earlier.
func monotonic() (usec int64, ok bool) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, false
	}
	return now.Nano() / int64(time.Microsecond), true
}
