//go:build !race

package netconn

import (
	"syscall"
	"unsafe"
)

// maxDirect is the most that is written without the knowledge of the scheduler, in bytes: who
// writes more has worked for it, and perhaps others wait.
const maxDirect = 16 << 10

// writeNow writes to a socket that does not block. The scheduler learns nothing of it: its monitor
// sleeps while the process is idle, and is woken by each system call that it learns of, which costs
// more than the call (docs/rationale.md).
func writeNow(fd uintptr, b []byte) (n int, errno syscall.Errno) {
	if len(b) > maxDirect {
		return writeKnown(fd, b)
	}
	return direct(syscall.SYS_WRITE, fd, b)
}

// readNow reads like writeNow writes.
func readNow(fd uintptr, b []byte) (n int, errno syscall.Errno) {
	return direct(syscall.SYS_READ, fd, b)
}

func direct(call, fd uintptr, b []byte) (n int, errno syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}
