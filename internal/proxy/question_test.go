package proxy_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestQuestionsThatAreDeclined: whatever a server that knows nothing of hhfr answers to an OPTIONS
// request, it sees one, and no call fails. A proxy that starts again asks again where no answer has
// decided.
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
			switch name {
			case "503", "nothing", "no HTTP": // calls ask again after a second
				assert.GreaterOrEqual(t, o.offers(), 2)
			case "301": // possibly of a captive portal, which is not remembered
				assert.Equal(t, 2, o.offers())
			default:
				assert.Equal(t, 1, o.offers())
			}
			assert.Len(t, o.received(), 6)
		})
	}
}

// letting is a clock on which a pause of a second or more is over once a test has received it.
type letting struct {
	clock.Clock
	pauses chan time.Duration
}

func (c *letting) Sleep(ctx context.Context, d time.Duration) error {
	if d < time.Second {
		return c.Clock.Sleep(ctx, d)
	}
	select {
	case c.pauses <- d:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TestUndecidedQuestions: an upstream that has not decided whether it has a stream is asked again:
// after the time that status 503 names, within bounds, or in growing intervals. The calls meanwhile
// go plainly, and the log says why, once. When it has a stream, calls go over it.
func TestUndecidedQuestions(t *testing.T) {
	const cut = ""
	busy := func(after string) string {
		return "HTTP/1.1 503 Busy\r\n" + after + "Content-Length: 0\r\n\r\n"
	}
	// The store does not remember it.
	no := "HTTP/1.1 301 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
	for name, c := range map[string]struct {
		answers []string // to the questions, one after the other
		pauses  []int    // after them, in seconds
		alone   bool     // no call is needed for the last question
	}{
		"cut":             {[]string{cut, cut, cut, cut, cut, cut, cut}, []int{1, 2, 4, 8, 16, 20, 20}, false},
		"503":             {[]string{busy(""), cut, busy("")}, []int{1, 2, 4}, false},
		"a time":          {[]string{busy("Retry-After: 7\r\n"), busy("Retry-After: 2\r\n")}, []int{7, 2}, true},
		"a short time":    {[]string{busy("Retry-After: 0\r\n")}, []int{1}, true},
		"a long time":     {[]string{busy("Retry-After: 86400\r\n")}, []int{20}, true},
		"a time long ago": {[]string{busy("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n")}, []int{1}, true},
		"a date to come":  {[]string{busy("Retry-After: Fri, 31 Dec 2999 23:59:59 GMT\r\n")}, []int{20}, true},
		"no time":         {[]string{busy("Retry-After: soon\r\n")}, []int{1}, false},
		"decided between": {[]string{cut, cut, no, cut, busy("Retry-After: 3\r\n"), cut},
			[]int{1, 2, 20, 1, 3, 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := startOrigin(t, "127.0.0.1:0", server(echoReply))
			far := startProxy(t, "127.0.0.1:0", o.url(), func(s *settings) { s.FarOnly = true })
			var questions atomic.Int64
			between := startOrigin(t, "127.0.0.1:0", func(conn net.Conn) {
				start := make([]byte, 4096)
				n, _ := conn.Read(start)
				if strings.HasPrefix(string(start[:n]), question) {
					if i := int(questions.Add(1)) - 1; i < len(c.answers) {
						_, _ = conn.Write([]byte(c.answers[i]))
						return
					}
				}
				up, err := new(net.Dialer).DialContext(t.Context(), "tcp", far.url().Host)
				if !assert.NoError(t, err) {
					return
				}
				_, _ = up.Write(start[:n])
				go func() {
					_, _ = io.Copy(conn, up)
					_ = conn.Close()
				}()
				_, _ = io.Copy(up, conn)
				_ = up.Close()
			})
			clock := &letting{clock.Real(), make(chan time.Duration)}
			var said warnings
			near := startOffering(t, "127.0.0.1:0", between.url(), func(s *settings) {
				s.Clock, s.RememberFor, s.NearOnly = clock, 20*time.Second, true
				s.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
			})
			call := func() {
				k := connect(t, near.url())
				k.say(post("", envelope))
				k.hear(envelope)
				_ = k.Close()
			}
			for i, pause := range c.pauses {
				late := time.After(patience)
				for waits := true; waits; {
					select {
					case <-late:
						require.Fail(t, "it is not asked again", "after question %d", i+1)
					case d := <-clock.pauses:
						assert.EqualValues(t, pause, d.Round(time.Second).Seconds(), "after question %d", i+1)
						waits = false
					case <-time.After(10 * time.Millisecond):
						call()
					}
				}
			}
			require.Eventually(t, func() bool {
				if !c.alone {
					call()
				}
				return near.Linked(t.Context()) == nil
			}, patience, 10*time.Millisecond)
			assert.EqualValues(t, len(c.answers)+1, questions.Load())
			require.Len(t, said.lines(), 1)
			assert.Contains(t, said.lines()[0], "it is asked again")
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
