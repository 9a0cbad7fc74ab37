package pcapng

// Writing tells that a write is in progress.
func (c *Conn) Writing() bool {
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	return c.writing
}
