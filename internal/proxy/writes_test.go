package proxy_test

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/principal"
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

// sentConn counts the bytes written to a connection.
type sentConn struct {
	net.Conn
	octets *atomic.Int64
}

func (c sentConn) NetConn() net.Conn { return c.Conn }

func (c sentConn) Write(p []byte) (int, error) {
	c.octets.Add(int64(len(p)))
	return c.Conn.Write(p)
}

// TestShortEndIsForThoseWhoReadIt: the end of a connection is one byte, unless the far half is of a
// version that reads the long line alone. What a connection takes else is the same, but for what
// goes by time: such a pair of connections does not count.
func TestShortEndIsForThoseWhoReadIt(t *testing.T) {
	t.Parallel()
	const want = len("=h\n") - len("=")
	var costs [][2]int64
	for range 5 {
		costs = append(costs, [2]int64{costOfConnection(t, false), costOfConnection(t, true)})
		if last := costs[len(costs)-1]; last[1]-last[0] == int64(want) {
			return
		}
	}
	assert.Fail(t, "never so many bytes less", "%d: %d", want, costs)
}

// costOfConnection is what a near half sends for a connection with a call, and its end.
func costOfConnection(t *testing.T, toUnable bool) int64 {
	server := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", server.url(), nil)
	var sent atomic.Int64
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.Listen, c.Clients = elsewhere{c.Listen}, principal.ByProof
		c.WrapDialed = func(conn net.Conn) net.Conn {
			conn = sentConn{conn, &sent}
			if toUnable {
				conn = unable{conn}
			}
			return conn
		}
	})
	near.linked(t)
	before := sent.Load()
	c := connectFrom(t, netip.MustParseAddr("127.0.0.2"), near.url())
	c.say(post(withSecret, envelope))
	c.hear(envelope)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return near.LanesKept() == 1 }, patience, time.Millisecond)
	return sent.Load() - before
}
