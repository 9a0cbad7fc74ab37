package real

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// ethernetSegments has a connection, and those of a listener, send and take segments as long as
// those of Ethernet, not those of the loopback.
func ethernetSegments(_, _ string, c syscall.RawConn) (err error) {
	failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, 1460) })
	if failed != nil {
		return failed
	}
	return err
}

// dataSegments is how many segments with data a connection has received; 0 if it is closed.
func dataSegments(c net.Conn) (n int64) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // fails if it is closed
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int64(info.Data_segs_in)
		}
	})
	return n
}
