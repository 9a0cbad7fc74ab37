package pcapng

// Writing reports whether a write is in progress.
func (c *RecordedConn) Writing() bool {
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	return c.writing
}
