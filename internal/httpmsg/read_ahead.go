package httpmsg

import (
	"io"
	"net"
)

// ReadAheadConn is a connection that net/http has read ahead of.
type ReadAheadConn struct {
	net.Conn
	rest io.Reader
}

// NewReadAheadConn returns conn with rest as its reader: first what was read ahead, and then what
// arrives.
func NewReadAheadConn(conn net.Conn, rest io.Reader) *ReadAheadConn {
	return &ReadAheadConn{Conn: conn, rest: rest}
}

// Read reads what was read ahead, and then the rest.
func (c *ReadAheadConn) Read(p []byte) (int, error) { return c.rest.Read(p) }

// NetConn returns the underlying connection.
func (c *ReadAheadConn) NetConn() net.Conn { return c.Conn }

// CloseWrite closes the write direction, where the connection can.
func (c *ReadAheadConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
