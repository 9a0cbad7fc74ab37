package oneport

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/sock"
)

// PeekedConn is a connection whose first bytes were read already: Read returns them first.
type PeekedConn struct {
	net.Conn

	mu    sync.Mutex
	ahead []byte
	err   error // after ahead
}

// secureConn is a [PeekedConn] inside TLS; net/http asks it for its state.
type secureConn struct {
	*PeekedConn
	secure *tls.Conn
}

// ConnectionState is the state of the TLS below.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }

// NetConn is the connection below, as for a *tls.Conn.
func (c *PeekedConn) NetConn() net.Conn { return c.Conn }

// Write implements [net.Conn].
func (c *PeekedConn) Write(b []byte) (int, error) { return netconn.Write(c.Conn, b) }

// TryWrite writes what the connection below takes at once; see package netconn.
func (c *PeekedConn) TryWrite(b []byte) int { return netconn.TryWrite(c.Conn, b) }

// GiveBack returns a connection from which what a source has read can be read again.
func GiveBack(in *sock.Source) net.Conn { return giveBack(in, nil) }

// giveBack is GiveBack for a connection that may have ended with err after that.
func giveBack(in *sock.Source, err error) net.Conn {
	c := &PeekedConn{Conn: in.Conn, ahead: append([]byte(nil), in.Peek()...)}
	if errors.Is(err, io.EOF) {
		c.err = io.EOF
	}
	if secure, ok := in.Conn.(*tls.Conn); ok {
		return &secureConn{c, secure}
	}
	return c
}

// Silent reports whether a connection had sent nothing when it was handed out, and still could.
func Silent(conn net.Conn) bool {
	c, ok := conn.(interface{ silent() bool })
	return ok && c.silent()
}

func (c *PeekedConn) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ahead) == 0 && c.err == nil
}

// Read implements [net.Conn].
func (c *PeekedConn) Read(b []byte) (int, error) {
	if n, err := c.readAhead(b); n > 0 || err != nil {
		return n, err
	}
	return netconn.Read(c.Conn, b)
}

// readAhead reads what was read already.
func (c *PeekedConn) readAhead(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ahead) == 0 {
		return 0, c.err
	}
	n := copy(b, c.ahead)
	if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
		c.ahead = nil
	}
	return n, nil
}

// CloseWrite ends the outgoing direction, or the whole connection if that is not possible.
func (c *PeekedConn) CloseWrite() error { return sock.CloseWrite(c.Conn) }

// Abort ends the connection so that the peer does not take it for an orderly end.
func (c *PeekedConn) Abort() error {
	sock.Reset(c.Conn)
	return nil
}
