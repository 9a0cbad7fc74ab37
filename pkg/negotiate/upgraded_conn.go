package negotiate

import (
	"io"
	"net"
	"sync/atomic"
)

// restConn is a connection that net/http has read ahead of.
type restConn struct {
	net.Conn
	rest io.Reader
}

// Read reads what was read ahead, and then the rest.
func (c *restConn) Read(p []byte) (int, error) { return c.rest.Read(p) }

// NetConn is the connection.
func (c *restConn) NetConn() net.Conn { return c.Conn }

// sharedConn is a connection that a stream has behind HTTP, and knows how much of it.
type sharedConn struct {
	restConn
	sent, received atomic.Int64
}

// Read implements [net.Conn].
func (c *sharedConn) Read(p []byte) (int, error) {
	n, err := c.restConn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// Write implements [net.Conn].
func (c *sharedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// Carried is how much the stream has written, and read, in bytes.
func (c *sharedConn) Carried() (sent, received int64) { return c.sent.Load(), c.received.Load() }
