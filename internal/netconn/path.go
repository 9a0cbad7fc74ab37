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
