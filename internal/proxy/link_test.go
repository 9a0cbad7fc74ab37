package proxy_test

import (
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// TestLinkCut: the connection between the proxies breaks without notice.
func TestLinkCut(t *testing.T) { inEachWay(t, linkCut) }

func linkCut(t *testing.T, mode negotiate.Mode) {
	arrived, release := make(chan struct{}, 4), make(chan struct{})
	o := startOrigin(t, "127.0.0.1:0", held(arrived, release))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	var mu sync.Mutex
	var dialled []*net.TCPConn
	sessions := 0
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.Mode = mode
		c.WrapDialed = func(conn net.Conn) net.Conn {
			mu.Lock()
			defer mu.Unlock()
			tcp, _ := netconn.As[*net.TCPConn](conn)
			dialled = append(dialled, tcp)
			return conn
		}
		c.OnSession = func(negotiate.Facts, net.Conn) {
			mu.Lock()
			defer mu.Unlock()
			sessions++
		}
	})
	c := connect(t, near.url())
	c.say(post("", envelope))
	<-arrived
	mu.Lock()
	stream := dialled[len(dialled)-1]
	mu.Unlock()
	require.NoError(t, stream.SetLinger(0))
	require.NoError(t, stream.Close())
	got := c.rest()
	assert.True(t, strings.HasPrefix(got, "HTTP/1.1 502 Bad Gateway\r\n"), "%q", got)
	assert.Contains(t, got, "unknown")
	close(release)
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return sessions == 2
	}, patience, 10*time.Millisecond, "hhfr again, though no call wants it")
	near.linked(t)
	again := connect(t, near.url())
	again.say(post("", envelope))
	again.hear(envelope)
	mu.Lock()
	defer mu.Unlock()
	if mode == negotiate.Explicit {
		assert.Len(t, dialled, 4, "two offers, two streams, and no plain connection")
	} else {
		assert.Len(t, dialled, 2, "the one that was upgraded, the one by which the session was met again, and "+
			"no plain one")
	}
	assert.Len(t, o.received(), 2, "each sent once")
}

func TestMoreClientsThanThereMayBe(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) { c.MaxConns, c.MaxPerPeer = 2, 2 })
	var held []*client
	for range 2 {
		c := connect(t, near.url())
		c.say(post("", envelope))
		c.hear(envelope)
		held = append(held, c)
	}
	over := connect(t, near.url())
	over.say(post("", envelope))
	got := over.rest()
	assert.True(t, strings.HasPrefix(got, "HTTP/1.1 503 Service Unavailable\r\n"), "%q", got)
	assert.Contains(t, got, "\r\nRetry-After: 5\r\n")
	assert.Contains(t, got, "the request was not processed")
	assert.Len(t, o.received(), 2)
	held[0].say(post("", "<again/>"))
	held[0].hear("<again/>")
}

func TestIdleClientIsClosed(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	passes := newSudden()
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) { c.Idle, c.Clock = ages, passes })
	c := connect(t, near.url())
	c.say(post("", envelope))
	c.hear(envelope)
	passes.end()
	assert.Empty(t, c.rest())
}

func TestWrongConfigurations(t *testing.T) {
	for _, u := range []*url.URL{nil, {Scheme: "ftp", Host: "x"}, {Scheme: "http"}} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		_, err = proxy.Start(proxy.Config{Listen: l, Routes: proxy.To(&proxy.Upstream{URL: u})})
		assert.ErrorIs(t, err, &proxy.Error{Code: proxy.BadConfig})
		_, err = l.Accept()
		assert.ErrorIs(t, err, net.ErrClosed)
	}
}
