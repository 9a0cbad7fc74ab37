package proxy_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestHeadAndBodyGoInOneWrite: each write is a packet, and the reader at its end wakes for each.
func TestHeadAndBodyGoInOneWrite(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	var up, down atomic.Int64
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return countedConn{conn, &up}, err
		}
	})
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.Listen = countedListener{c.Listen, &down}
	})
	c := connect(t, near.url())
	up.Store(0) // the far one has sent an offer
	for range 10 {
		c.say(post("", envelope))
		c.hear(envelope)
	}
	assert.EqualValues(t, 10, up.Load(), "writes to the server")
	assert.EqualValues(t, 10, down.Load(), "writes to the client")
}

// countedListener counts the writes to what it accepts.
type countedListener struct {
	net.Listener
	writes *atomic.Int64
}

func (l countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{conn, l.writes}, nil
}

// countedConn counts the writes to a connection.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) NetConn() net.Conn { return c.Conn }

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}
