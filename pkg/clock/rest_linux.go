package clock

import (
	"syscall"
	"time"
)

// rest waits on the thread, by the kernel's fine timers. It may end early.
func rest(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	for syscall.Nanosleep(&t, &t) == syscall.EINTR {
		// The runtime has sent a signal; t is what is left.
	}
}
