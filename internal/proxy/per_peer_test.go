package proxy_test

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAnAddressKeepsNobodyOut: the connections of one address, idle or silent, more than there may
// be, leave the slots of others, at a near proxy and at a far one, and the half of a pair at that
// address can come back.
func TestAnAddressKeepsNobodyOut(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	bound := func(c *settings) { c.MaxConns, c.MaxPerPeer = 24, 8 }
	far := startProxy(t, "127.0.0.1:0", o.url(), bound)
	var link cuttable
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		bound(c)
		c.WrapDialed = link.wrap
	})
	near.linked(t)
	here, hostile, other := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.9"),
		netip.MustParseAddr("127.0.0.10")
	statusOf := func(c *client, request string) string {
		c.say(request)
		head := make([]byte, len("HTTP/1.1 200"))
		_, err := io.ReadFull(c, head)
		require.NoError(t, err)
		return string(head[len("HTTP/1.1 "):])
	}
	status := func(c *client) string { return statusOf(c, post("", envelope)) }
	for _, which := range []struct {
		end
		from netip.Addr
	}{{near, hostile}, {far, hostile}, {far, here}} {
		for status(connectFrom(t, which.from, which.url())) != "503" {
		}
		if which.from == hostile {
			for range 100 {
				connectFrom(t, which.from, which.url())
			}
			assert.Equal(t, "200", status(connectFrom(t, other, which.url())))
		}
	}
	asks := "OPTIONS /service HTTP/1.1\r\nHost: h\r\n" + asking + "\r\n"
	assert.Equal(t, "101", statusOf(connectFrom(t, here, far.url()), asks), "a stream is no client")
	link.cut()
	require.Eventually(t, func() bool { // calls ask for it
		c := connectFrom(t, other, near.url())
		got := status(c)
		require.NoError(t, c.Close())
		return got == "200" && near.Linked(t.Context()) == nil
	}, patience, 10*time.Millisecond)
}

// cuttable are connections that a test breaks.
type cuttable struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (l *cuttable) wrap(c net.Conn) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	return c
}

func (l *cuttable) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
}
