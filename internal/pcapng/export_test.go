package pcapng

// Writing tells that a write is under way.
func (c *Conn) Writing() bool {
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	return c.writing
}
