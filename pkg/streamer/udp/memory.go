package udp

import "sync/atomic"

// kept counts the octets that arrived and are not read, of all connections of a listener. They change it without a lock of all: it may be exceeded by a datagram of each.
type kept struct{ octets atomic.Int64 }

// count tells what this connection has of them. The caller has mu.
func (c *conn) count() {
	n := int64(c.inboxed)
	if !c.left {
		n += int64(c.engine.Held())
	}
	c.kept.octets.Add(n - c.counted)
	c.counted = n
}

// ration has the packet that arrived take no more than there is memory for. What is not in turn makes room for what is, in the engine. What is in turn waits only for who reads: without its units, a packet is still a sign of
// life, and acknowledges.
func (c *conn) ration() {
	octets, unread := hold, 2*hold // an honest end has no more under way than fits in the second half
	if c.kept.octets.Load() > maxKept {
		octets, unread = share, share
	}
	c.engine.Narrow(octets)
	if c.inboxed > unread {
		c.packet.Units = c.packet.Units[:0]
	}
}
