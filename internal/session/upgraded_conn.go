package session

import (
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/httpmsg"
)

// sharedConn is a connection that a stream takes over after HTTP; it counts the stream's bytes.
type sharedConn struct {
	*httpmsg.ReadAheadConn
	sent, received atomic.Int64
}

// Read implements [net.Conn].
func (c *sharedConn) Read(p []byte) (int, error) {
	n, err := c.ReadAheadConn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// Write implements [net.Conn].
func (c *sharedConn) Write(p []byte) (int, error) {
	n, err := c.ReadAheadConn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// TryWrite writes what the connection below takes at once; see package netconn.
func (c *sharedConn) TryWrite(p []byte) int {
	n := c.ReadAheadConn.TryWrite(p)
	c.sent.Add(int64(n))
	return n
}

// Carried returns how many bytes the stream has written, and read.
func (c *sharedConn) Carried() (sent, received int64) { return c.sent.Load(), c.received.Load() }
