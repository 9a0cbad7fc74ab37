package tcp

import (
	"net"
	"syscall"
	"time"
)

// userTimeout is TCP_USER_TIMEOUT of linux/tcp.h, in milliseconds; package syscall lacks its name.
const userTimeout = 18

// giveUpAfter has the system end a connection on which nothing was acknowledged for so long. Where
// it cannot, its own time-outs hold.
func giveUpAfter(conn *net.TCPConn, d time.Duration) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(d.Milliseconds()))
	})
}
