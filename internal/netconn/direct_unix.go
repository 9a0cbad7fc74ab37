//go:build unix && (!linux || race)

package netconn

import "syscall"

// writeNow writes to a socket that does not block. The race detector sees what that orders.
func writeNow(fd uintptr, b []byte) (n int, errno syscall.Errno) { return writeKnown(fd, b) }

// readNow reads like writeNow writes.
func readNow(fd uintptr, b []byte) (n int, errno syscall.Errno) {
	for {
		n, err := syscall.Read(int(fd), b)
		if errno = errnoOf(err); errno != syscall.EINTR {
			return n, errno
		}
	}
}
