package proxy

import (
	"github.com/hhfr/hhfr/internal/http1"
)

// IsLast reports whether an HTTP message whose bytes are all there says that its connection is
// closed after it.
func IsLast(octets []byte) bool {
	h, _, err := http1.ParseHead(octets, maxHeadOctets)
	return err == nil && isLast(&h)
}

// ClientChange is the head part of the one-way message that says that what follows on a lane is
// another client's, on the same connection.
func ClientChange() []byte { return line(change) }

// UpstreamEnded and LaneEnd are the head parts of the one-way messages without a body by which the
// connection of a lane ends: the upstream closed after so many of its calls; the client's is gone,
// which may come again if it is known by its address.
func UpstreamEnded(calls, client uint64) []byte { return endLine(ended, calls, client) }
func LaneEnd(perAddress bool) []byte {
	if perAddress {
		return []byte(hangUpLine)
	}
	return line(leave)
}
