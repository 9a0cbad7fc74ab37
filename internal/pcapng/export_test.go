package pcapng

// Writing tells that a write is under way.
func (c *RecordedConn) Writing() bool {
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	return c.writing
}
