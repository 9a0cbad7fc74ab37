// Package tcp is the transport over TCP. Addresses are host:port.
package tcp

import (
	"context"
	"net"
)

// Transport dials and listens. The zero value is ready. Small frames leave at once (TCP_NODELAY is on, as the writer batches by itself); connections
// have CloseWrite.
type Transport struct{}

// Dial connects to addr.
func (Transport) Dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := prompt(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// Listen waits for connections at addr; port 0 takes a free one.
func (Transport) Listen(ctx context.Context, addr string) (net.Listener, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return listener{l}, nil
}

// listener sets what it accepts up as Dial does.
type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// A connection that is gone already is found out by who reads it.
	_ = prompt(conn)
	return conn, nil
}

func prompt(conn net.Conn) error {
	if t, ok := conn.(*net.TCPConn); ok {
		return t.SetNoDelay(true)
	}
	return nil
}
