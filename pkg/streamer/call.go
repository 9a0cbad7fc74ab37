package streamer

// call is a request that waits for its reply. Fields are under exchanges.mu.
type call struct {
	s        *Stream
	wire     wireCount
	out      *outbound  // nil once the call is over
	replies  []*inbound // that nobody has taken yet
	reading  *inbound   // that was taken last
	answered bool       // the reply that counts has begun
	err      *Error
	over     bool          // no (further) byte of a reply counts
	wait     chan struct{} // of who waits; it has room, and gets one value when there is something
	notify   func()        // called when there is something, once; nil: it was
	quick    func() bool   // called before, if the reader may; nil: nobody takes replies so
	space    [1]*inbound   // what most calls need
}

// receivedReply is what a reply needs, in one piece of memory.
type receivedReply struct {
	in      inbound
	body    body
	message Message
}

func newReply() *inbound {
	r := new(receivedReply)
	r.in.reply, r.body.in = r, &r.in
	return &r.in
}

// maxInterims bounds the replies before the one that counts that nobody has taken yet; together
// they have at most about a window of content.
const maxInterims = 64

// takesInterims reports whether a further one may wait.
func (c *call) takesInterims() bool {
	kept := int64(0)
	for _, in := range c.replies {
		kept += in.taken()
	}
	return len(c.replies) < maxInterims && kept <= c.s.cfg.Limits.Window
}

func (c *call) isReadyLocked() bool { return len(c.replies) > 0 || c.err != nil }

func (c *call) wakeLocked() {
	if c.wait != nil {
		c.wait <- struct{}{}
		c.wait = nil
	}
	if f := c.notify; f != nil {
		c.notify = nil
		f()
	}
}

// taken reports whether somebody has the reply that counts.
func (c *call) taken() bool { return c.reading != nil && !c.reading.interim }

func (c *call) failRepliesLocked(e *Error) {
	for _, in := range c.replies {
		in.fail(e)
	}
	if c.reading != nil {
		c.reading.fail(e)
	}
}
