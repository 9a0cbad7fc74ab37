package netconn

import (
	"net"
	"time"
)

// PathInfo is what a connection knows of the path to its peer.
type PathInfo struct {
	// RoundTrip is the smoothed round trip time; 0 before it was measured.
	RoundTrip time.Duration
	// Resent counts the packets that were sent again.
	Resent int64
}

// Acknowledge has the kernel acknowledge at once what has come on a connection: a peer that writes
// what belongs together in several pieces may hold the next one back until then (RFC 896), and this
// kernel the acknowledgement for 40 ms (RFC 1122, section 4.2.3.2). It is no failure where that is
// not to be had.
func Acknowledge(c net.Conn) {
	if t, ok := As[*net.TCPConn](c); ok {
		acknowledge(t)
	}
}

type pathTeller interface{ Path() PathInfo }

// PathOf returns what a connection, or what it wraps, knows of its path. Over TCP that is what the
// kernel says; false: nobody says anything.
func PathOf(c net.Conn) (PathInfo, bool) {
	if t, ok := As[pathTeller](c); ok {
		return t.Path(), true
	}
	if t, ok := As[*net.TCPConn](c); ok {
		return ofKernel(t)
	}
	return PathInfo{}, false
}
