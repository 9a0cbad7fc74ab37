// Package tcp is the transport over TCP. Addresses are host:port.
package tcp

import (
	"context"
	"net"
	"time"
)

// Transport dials and listens. The zero value is ready. Small frames leave at once (TCP_NODELAY is
// on, as the writer batches by itself); connections have CloseWrite.
//
// A connection whose other end is gone without a word (its host, or the memory of a router between)
// ends about two minutes after the last byte that came. A silent one is probed from 30 s on, which
// also keeps routers from forgetting it; what is sent and not acknowledged for so long ends it on
// Linux and Android, elsewhere after what the system has for that.
type Transport struct{}

const (
	// probeIdle is shorter than what common routers forget a connection after; a probe has some 80
	// bytes, both ways.
	probeIdle = 30 * time.Second
	// With these, deadAfter have passed without a word.
	probeInterval = 15 * time.Second
	probeCount    = 6
	// deadAfter is several times what a queue on the slowest link holds (docs/cli.md, profiles), so
	// that a link is slow rather than dead.
	deadAfter = probeIdle + probeCount*probeInterval
)

var probes = net.KeepAliveConfig{Enable: true, Idle: probeIdle, Interval: probeInterval, Count: probeCount}

// Dial connects to addr.
func (Transport) Dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: probes}
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
	c := net.ListenConfig{KeepAliveConfig: probes}
	l, err := c.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return tunedListener{l}, nil
}

// tunedListener sets what it accepts up as Dial does.
type tunedListener struct{ net.Listener }

func (l tunedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// A connection that is gone already is found out by who reads it.
	_ = prompt(conn)
	return conn, nil
}

func prompt(conn net.Conn) error {
	t, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	giveUpAfter(t, deadAfter)
	return t.SetNoDelay(true)
}
