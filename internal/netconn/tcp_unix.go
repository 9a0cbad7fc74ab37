//go:build unix

package netconn

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// tryTCP writes what the socket takes at once.
func tryTCP(c *net.TCPConn, b []byte) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Write(func(fd uintptr) bool { // an error is left to Write
		n, _ = writeNow(fd, b)
		return true
	})
	return max(n, 0)
}

// readTCP is c.Read.
func readTCP(c *net.TCPConn, b []byte) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil || len(b) == 0 {
		return c.Read(b)
	}
	var errno syscall.Errno
	if raw.Read(func(fd uintptr) (done bool) {
		n, errno = readNow(fd, b)
		return errno != syscall.EAGAIN
	}) != nil {
		return c.Read(b) // it has the error again, and says it in its own way
	}
	switch {
	case errno != 0:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(),
			Err: os.NewSyscallError("read", errno)}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// writeKnown writes with the knowledge of the scheduler.
func writeKnown(fd uintptr, b []byte) (n int, errno syscall.Errno) {
	for {
		n, err := syscall.Write(int(fd), b)
		if errno = errnoOf(err); errno != syscall.EINTR {
			return n, errno
		}
	}
}

func errnoOf(err error) syscall.Errno {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, syscall.EAGAIN):
		return syscall.EAGAIN
	}
	var errno syscall.Errno
	errors.As(err, &errno)
	return errno
}
