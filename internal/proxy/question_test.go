package proxy_test

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestQuestionsThatAreDeclined: whatever a server that knows nothing of hhfr answers to an OPTIONS
// request, it sees one, and no call fails.
func TestQuestionsThatAreDeclined(t *testing.T) {
	for name, answer := range map[string]string{
		"200": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"204": "HTTP/1.1 204 No Content\r\nAllow: POST\r\n\r\n",
		"301": "HTTP/1.1 301 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
		"400": "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"401": "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
		"404": "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
		"405": "HTTP/1.1 405 No\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n",
		"426": "HTTP/1.1 426 Upgrade Required\r\nUpgrade: TLS/1.3\r\nConnection: Upgrade\r\n" +
			"Content-Length: 0\r\n\r\n",
		"500":         "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
		"501":         "HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\n\r\n",
		"503":         "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
		"another 101": "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"nothing":     "", "no HTTP": "220 ready\r\n", "endless": "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx",
		"a field that is none": "HTTP/1.1 200 OK\r\nHHFR: yes\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := startOrigin(t, "127.0.0.1:0", server(func(h *http1.Head, entity []byte) []byte {
				switch {
				case !isOffer(h):
					return echoReply(h, entity)
				case answer == "":
					return nil
				}
				return []byte(answer)
			}))
			store := keeping(t)
			for range 2 { // the store remembers it
				near := startProxy(t, "127.0.0.1:0", o.url(), store)
				require.Error(t, near.Linked(t.Context()))
				for range 3 {
					c := connect(t, near.url())
					c.say(post("", envelope))
					c.hear(envelope)
				}
				require.NoError(t, near.Close())
			}
			asked := 1
			if name == "301" { // possibly of a captive portal, which is not remembered
				asked = 2
			}
			assert.Equal(t, asked, o.offers())
			assert.Len(t, o.received(), 6)
		})
	}
}

// TestIntermediaryThatTakesTheUpgrade: through an HTTP intermediary that forwards no upgrades, the
// answer says where streams are opened, and the pair has one at another connection.
func TestIntermediaryThatTakesTheUpgrade(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	var sessions admitted
	far := startProxy(t, "127.0.0.1:0", o.url(), sessions.change)
	var asked sync.Map
	between := httptest.NewServer(withoutUpgrades(far.url(), func(method string) { asked.Store(method, true) }))
	defer between.Close()
	to, err := url.Parse(between.URL + "/service")
	require.NoError(t, err)
	near := startProxy(t, "127.0.0.1:0", to, nil)
	near.linked(t)
	use(t, near)
	require.Len(t, sessions.all(), 1)
	assert.Equal(t, negotiate.TransportURI("tcp"), sessions.all()[0].Transport)
	_, posts := asked.Load(http.MethodPost)
	assert.False(t, posts, "all calls go over the stream")
	assert.Zero(t, func() (n int) {
		for _, s := range o.received() {
			n += strings.Count(s, "HHFR")
		}
		return n
	}())
}

// TestBlockedPortOfAnUpgradedLink: if streams cannot be opened at their port, upgraded connections
// replace them, also after a link was lost. If upgrades are not forwarded either, plain HTTP is
// left, which is reported once.
func TestBlockedPortOfAnUpgradedLink(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	blocked, err := net.ResolveTCPAddr("tcp", shared.Addr(t))
	require.NoError(t, err)
	elsewhere, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var sessions admitted
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.Streams = moved{elsewhere, blocked}
		sessions.change(c)
	})
	var said warnings
	var mu sync.Mutex
	var link net.Conn
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
		c.WrapDialed = func(conn net.Conn) net.Conn {
			mu.Lock()
			defer mu.Unlock()
			link = conn
			return conn
		}
	})
	for n := range 3 {
		require.Eventually(t, func() bool {
			return len(sessions.all()) == n+1 && near.Linked(t.Context()) == nil
		}, patience, 10*time.Millisecond)
		use(t, near)
		mu.Lock()
		require.NoError(t, link.Close())
		mu.Unlock()
	}
	require.NoError(t, near.Close())
	assert.Equal(t, []string{""}, said.lines())

	between := httptest.NewServer(withoutUpgrades(far.url(), func(string) {}))
	defer between.Close()
	to, err := url.Parse(between.URL + "/service")
	require.NoError(t, err)
	near = startProxy(t, "127.0.0.1:0", to, func(c *settings) {
		c.RememberFor = time.Millisecond
		c.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	for range 10 {
		c := connect(t, near.url())
		c.say(post("Connection: close\r\n", envelope))
		assert.Contains(t, c.rest(), envelope)
		require.Error(t, near.Linked(t.Context()))
	}
	require.Len(t, said.lines(), 1)
	assert.Contains(t, said.lines()[0], "no stream to "+blocked.String()+" (connection refused)")
	assert.Contains(t, said.lines()[0], "open that port")
}

// withoutUpgrades is an HTTP intermediary that forwards no upgrades.
func withoutUpgrades(to *url.URL, seen func(method string)) http.Handler {
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		seen(r.In.Method)
		r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
		r.Out.Header.Del("Upgrade")
		r.Out.Header.Del("Connection")
	}}
}

// TestQuestionOnAConnectionToBeClosed: an intermediary that speaks HTTP/1.0, or wants the
// connection closed, gets it closed after the answer.
func TestQuestionOnAConnectionToBeClosed(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.Transports = map[string]streamer.Transport{}
	})
	for _, request := range []string{
		"OPTIONS / HTTP/1.0\r\nHHFR: 1\r\n\r\n",
		"OPTIONS / HTTP/1.1\r\nHost: x\r\nHHFR: 1\r\nConnection: close\r\n\r\n",
	} {
		c := connect(t, far.url())
		c.say(request)
		got := c.rest()
		assert.True(t, strings.HasPrefix(got, "HTTP/1.1 204 "), "%q", got)
		assert.Contains(t, strings.ToLower(got), "\r\nhhfr: 1;address=")
		assert.Contains(t, got, "\r\nConnection: close\r\n")
	}
	c := connect(t, far.url())
	c.say("OPTIONS / HTTP/1.1\r\nHost: x\r\nHHFR: 1\r\n\r\n")
	c.hear("\r\n\r\n")
	c.say(post("", envelope))
	c.hear(envelope)
}
