package netconn

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// ofKernel asks the kernel; false: the connection is closed, or the kernel does not tell.
func ofKernel(c *net.TCPConn) (PathInfo, bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return PathInfo{}, false
	}
	var info *unix.TCPInfo
	var failed error
	err = raw.Control(func(fd uintptr) {
		info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err != nil || failed != nil {
		return PathInfo{}, false
	}
	return PathInfo{RoundTrip: time.Duration(info.Rtt) * time.Microsecond, Resent: int64(info.Total_retrans)}, true
}

func acknowledge(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
}
