//go:build !linux

package real

import (
	"net"
	"syscall"
)

func ethernetSegments(string, string, syscall.RawConn) error { return nil }

// dataSegments is known on Linux only.
func dataSegments(net.Conn) int64 { return 0 }
