package httpmsg

import (
	"io"
	"net"

	"github.com/hhfr/hhfr/internal/netconn"
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

// Write implements [net.Conn].
func (c *ReadAheadConn) Write(p []byte) (int, error) { return netconn.Write(c.Conn, p) }

// NetConn returns the underlying connection, which can do all else; see package netconn.
func (c *ReadAheadConn) NetConn() net.Conn { return c.Conn }

// TryWrite writes what the connection below takes at once; see package netconn.
func (c *ReadAheadConn) TryWrite(b []byte) int { return netconn.TryWrite(c.Conn, b) }
