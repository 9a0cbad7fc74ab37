package streamer

import "sync/atomic"

// WireBytes counts what the data frames of messages take on the wire. One may count for many
// messages, of any number of streams.
type WireBytes struct{ Sent, Received atomic.Int64 }

// wireCount is what was counted of one exchange, until somebody wants it in a WireBytes.
type wireCount struct {
	WireBytes
	to atomic.Pointer[WireBytes]
}

// add counts the bytes of a frame.
func (c *wireCount) add(sent, received int) {
	if sent > 0 {
		c.Sent.Add(int64(sent))
	}
	if received > 0 {
		c.Received.Add(int64(received))
	}
	c.pass(c.to.Load())
}

// countFor has a frame count for to, as well as all before it.
func (c *wireCount) countFor(to *WireBytes) {
	c.to.Store(to)
	c.pass(to)
}

// pass hands over what is not yet counted there. Whoever takes a number out has it alone.
func (c *wireCount) pass(to *WireBytes) {
	if to == nil {
		return
	}
	if n := c.Sent.Swap(0); n != 0 {
		to.Sent.Add(n)
	}
	if n := c.Received.Swap(0); n != 0 {
		to.Received.Add(n)
	}
}
