package clock

import (
	"syscall"
	"time"
)

// rest waits on the thread, with the kernel's fine timers. It may end early.
func rest(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	for syscall.Nanosleep(&t, &t) == syscall.EINTR {
		// The runtime has sent a signal; t is the remaining time.
	}
}
