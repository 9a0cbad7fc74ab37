//go:build unix

package netconn

import (
	"errors"
	"net"
	"syscall"
)

// tryTCP writes what the socket takes at once.
func tryTCP(c *net.TCPConn, b []byte) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Write(func(fd uintptr) bool { // an error is left to Write
		for {
			if n, err = syscall.Write(int(fd), b); !errors.Is(err, syscall.EINTR) {
				return true
			}
		}
	})
	return max(n, 0)
}
