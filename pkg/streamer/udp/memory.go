package udp

import "sync/atomic"

// usage counts the bytes that arrived and are not read, of all connections of a listener. They
// change it without a common lock: it may be exceeded by a datagram of each.
type usage struct{ bytes atomic.Int64 }

// count adds what this connection has of them now. The caller has mu.
func (c *conn) count() {
	n := int64(c.inboxed)
	if !c.left {
		n += int64(c.engine.Held())
	}
	c.usage.bytes.Add(n - c.counted)
	c.counted = n
}

// ration has the packet that arrived take no more than there is memory for. What is not in turn is
// dropped for what is, in the engine. What is in turn waits only for its reader: without its units,
// a packet is still a sign of life, and acknowledges.
func (c *conn) ration() {
	most, unread := hold, 2*hold // an honest end has no more under way than fits in the second half
	if c.usage.bytes.Load() > maxUsage {
		most, unread = share, share
	}
	c.engine.Narrow(most)
	if c.inboxed > unread {
		c.packet.Units = c.packet.Units[:0]
	}
}
