package streamer

import "sync/atomic"

// WireBytes counts what the data frames of messages take on the wire. One may count for many
// messages, of any number of streams. Its methods and fields may be used concurrently.
type WireBytes struct {
	Sent, Received atomic.Int64

	also atomic.Pointer[WireBytes]
	over atomic.Bool
}

// Also has what is counted from now on count for another one as well; nil: for no other. That one
// must lead to no third one.
func (b *WireBytes) Also(other *WireBytes) { b.also.Store(other) }

// Over reports whether the reply to an exchange that counts here has left, or will not: no further
// data frames of it follow.
func (b *WireBytes) Over() bool { return b.over.Load() }

func (b *WireBytes) add(sent, received int64) {
	if sent != 0 {
		b.Sent.Add(sent)
	}
	if received != 0 {
		b.Received.Add(received)
	}
	if also := b.also.Load(); also != nil {
		also.add(sent, received)
	}
}

// wireCount is what was counted of one exchange, until somebody wants it in a WireBytes.
type wireCount struct {
	sent, received atomic.Int64
	to             atomic.Pointer[WireBytes]
	over           atomic.Bool
}

// add counts the bytes of a frame.
func (c *wireCount) add(sent, received int) {
	if sent > 0 {
		c.sent.Add(int64(sent))
	}
	if received > 0 {
		c.received.Add(int64(received))
	}
	c.pass(c.to.Load())
}

// countFor has a frame count for to, as well as all before it.
func (c *wireCount) countFor(to *WireBytes) {
	c.to.Store(to)
	c.pass(to)
}

// end notes that nothing more is sent.
func (c *wireCount) end() {
	c.over.Store(true)
	c.pass(c.to.Load())
}

// pass hands over what is not yet counted there. Whoever takes a number out has it alone.
func (c *wireCount) pass(to *WireBytes) {
	if to == nil {
		return
	}
	to.add(c.sent.Swap(0), c.received.Swap(0))
	if c.over.Load() {
		to.over.Store(true)
	}
}
