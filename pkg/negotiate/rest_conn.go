package negotiate

import (
	"io"
	"net"
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

// CloseWrite ends the direction, where the connection can.
func (c *restConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
