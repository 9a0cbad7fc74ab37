package proxy_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// counting counts sessions and dialed connections of a proxy.
type counting struct{ sessions, dialled atomic.Int32 }

func (n *counting) change(c *settings) {
	c.OnSession = func(negotiate.Facts, net.Conn) { n.sessions.Add(1) }
	c.WrapDialed = func(conn net.Conn) net.Conn {
		n.dialled.Add(1)
		return conn
	}
}

func TestMessagesTravelOnOneStream(t *testing.T) {
	inEachWay(t, func(t *testing.T, mode negotiate.Mode) {
		o := startOrigin(t, "127.0.0.1:0", server(echoReply))
		var n counting
		far := startProxy(t, "127.0.0.1:0", o.url(), nil)
		near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
			n.change(c)
			c.Mode = mode
		})
		for range 5 {
			c := connect(t, near.url())
			c.say(post("", envelope))
			c.hear(envelope)
			require.NoError(t, c.CloseWrite())
			c.rest()
		}
		assert.EqualValues(t, 1, n.sessions.Load())
		dialled := map[negotiate.Mode]int32{negotiate.Auto: 1, negotiate.Explicit: 2}[mode]
		assert.Equal(t, dialled, n.dialled.Load(),
			"the offer, whose connection may be the stream's, and no plain connection")
		assert.Len(t, o.received(), 5, "a connection for each client")
	})
}

func TestPlainServerIsAskedOnce(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	near := startProxy(t, "127.0.0.1:0", o.url(), nil)
	for range 3 {
		c := connect(t, near.url())
		c.say(post("", envelope))
		c.hear(envelope)
	}
	assert.Equal(t, 1, o.offers())
}

func TestUpstreamDown(t *testing.T) {
	nowhere := &url.URL{Scheme: "http", Host: shared.Addr(t), Path: "/service"}
	near, far := pair(t, nowhere, nil)
	for _, to := range []end{near, far} {
		c := connect(t, to.url())
		c.say(post("", envelope))
		got := c.rest()
		assert.True(t, strings.HasPrefix(got, "HTTP/1.1 502 Bad Gateway\r\n"), "%q", got)
		assert.Contains(t, got, "the request was not sent")
	}
}

// held is a server whose replies wait for release.
func held(arrived chan<- struct{}, release <-chan struct{}) func(net.Conn) {
	return server(func(h *http1.Head, entity []byte) []byte {
		if isOffer(h) {
			return []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		}
		arrived <- struct{}{}
		<-release
		return echoReply(h, entity)
	})
}

func TestFarEndKilledDuringACall(t *testing.T) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	o := startOrigin(t, "127.0.0.1:0", held(arrived, release))
	near, far := pair(t, o.url(), nil)
	c := connect(t, near.url())
	c.say(post("", envelope))
	<-arrived
	require.NoError(t, far.Close())
	got := c.rest()
	close(release)
	assert.True(t, strings.HasPrefix(got, "HTTP/1.1 502 Bad Gateway\r\n"), "%q", got)
	assert.Contains(t, got, "whether the request was processed is unknown")
	assert.Len(t, o.received(), 1, "sent once")
}

// TestDrain: a proxy that drains accepts no connection any more, completes the calls in progress,
// and waits for no other.
func TestDrain(t *testing.T) {
	for _, which := range []string{"near", "far"} {
		t.Run(which, func(t *testing.T) {
			arrived, release := make(chan struct{}, 1), make(chan struct{})
			o := startOrigin(t, "127.0.0.1:0", held(arrived, release))
			near, far := pair(t, o.url(), nil)
			ending := map[string]end{"near": near, "far": far}[which]
			silent, idle := connect(t, near.url()), connect(t, near.url())
			idle.say("OPTIONS /service HTTP/1.1\r\nHost: x\r\n\r\n")
			idle.hear("\r\n\r\n")
			c := connect(t, near.url())
			c.say(post("", envelope))
			<-arrived

			late, giveUp := context.WithCancel(t.Context())
			giveUp()
			ending.Drain(late) // the call is in progress still
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				ending.Drain(t.Context())
			}()
			_, err := new(net.Dialer).DialContext(t.Context(), "tcp", ending.url().Host)
			require.Error(t, err)
			select {
			case <-drained:
				t.Fatal("a call is in progress")
			default:
			}
			close(release)
			c.hear(envelope)
			<-drained
			require.NoError(t, ending.Close())
			if which == "near" {
				assert.Empty(t, idle.rest())
				assert.Empty(t, silent.rest())
			}
		})
	}
}

// TestDrainAfterAnyEnd: calls that ended in any way do not delay it.
func TestDrainAfterAnyEnd(t *testing.T) {
	for _, s := range scripts {
		o := startOrigin(t, "127.0.0.1:0", s.server)
		near, far := pair(t, o.url(), small)
		c := connect(t, near.url())
		s.client(c)
		require.NoError(t, c.Close())
		o.close()
		near.Drain(t.Context())
		require.NoError(t, near.Close())
		far.Drain(t.Context())
		require.NoError(t, far.Close(), s.name)
	}
}

func TestFarEndReplacedAndRestarted(t *testing.T) { inEachWay(t, farEndReplacedAndRestarted) }

func farEndReplacedAndRestarted(t *testing.T, mode negotiate.Mode) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	addr := shared.Addr(t)
	var first, second, n counting
	far := startProxy(t, addr, o.url(), first.change)
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		n.change(c)
		c.Mode, c.RememberFor = mode, -1
	})
	kept := connect(t, near.url())
	kept.say(post("", "<one/>"))
	kept.hear("<one/>")

	require.NoError(t, far.Close())
	plain := startOrigin(t, addr, server(echoReply))
	kept.say(post("", "<two/>"))
	kept.hear("<two/>")
	carries := func(body string) (n int) {
		for _, s := range plain.received() {
			if strings.HasSuffix(s, body) {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 1, carries("<two/>"), "a connection that is open goes on, plainly")
	again := connect(t, near.url())
	again.say(post("", "<three/>"))
	again.hear("<three/>")
	assert.Equal(t, 1, carries("<three/>"))
	assert.EqualValues(t, 1, first.sessions.Load())

	plain.close()
	startProxy(t, addr, o.url(), second.change)
	require.Eventually(t, func() bool { // a call makes it ask again, and does not wait
		last := connect(t, near.url())
		last.say(post("", "<four/>"))
		last.hear("<four/>")
		return near.Linked(t.Context()) == nil
	}, patience, 10*time.Millisecond)
	plainly := n.dialled.Load()
	last := connect(t, near.url())
	last.say(post("", "<five/>"))
	last.hear("<five/>")
	assert.EqualValues(t, 1, second.sessions.Load(), "hhfr again")
	assert.Equal(t, plainly, n.dialled.Load())
}

func TestRepliesAreNeverMixedUp(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	addr := shared.Addr(t)
	far := startProxy(t, addr, o.url(), nil)
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) { c.RememberFor = -1 })
	const clients, calls = 16, 30
	var through, failed atomic.Int32
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			var conn net.Conn
			for k := range calls {
				if conn == nil {
					var err error
					if conn, err = new(net.Dialer).DialContext(t.Context(), "tcp",
						near.Addrs()["http"].String()); !assert.NoError(t, err) {
						return
					}
				}
				body := fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><a `+
					`xmlns="urn:x">%d-%d</a></s:Body></s:Envelope>`, i, k)
				_, _ = io.WriteString(conn, post("", body))
				r := &requests{conn: conn}
				h, err := r.head()
				if err != nil || h.Status() != 200 {
					failed.Add(1)
					_ = conn.Close()
					conn = nil
					continue
				}
				_, entity, err := r.body(&h)
				if err != nil {
					failed.Add(1)
					_ = conn.Close()
					conn = nil
					continue
				}
				through.Add(1)
				assert.Equal(t, body, string(entity))
			}
			if conn != nil {
				_ = conn.Close()
			}
		})
	}
	for range 3 {
		require.NoError(t, far.Close())
		far = startProxy(t, addr, o.url(), nil)
	}
	wait.Wait()
	assert.EqualValues(t, clients*calls, through.Load()+failed.Load())
	assert.Positive(t, through.Load())
}

func TestStreamedReplyArrivesInTime(t *testing.T) {
	next := make(chan string)
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		h, err := r.head()
		if err != nil {
			return
		}
		if _, _, err := r.body(&h); err != nil || isOffer(&h) {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for s := range next {
			_, _ = fmt.Fprintf(c, "%x\r\n%s\r\n", len(s), s)
		}
		_, _ = io.WriteString(c, "0\r\n\r\n")
		h, err = r.head()
		if err != nil {
			return
		}
		_, entity, _ := r.body(&h)
		_, _ = c.Write(echoReply(&h, entity))
	})
	near, _ := pair(t, o.url(), nil)
	c := connect(t, near.url())
	c.say(post("", envelope))
	c.hear("\r\n\r\n")
	for _, s := range []string{"<notification>1</notification>", "<notification>2</notification>",
		strings.Repeat("<n/>", 50000)} {
		next <- s
		c.hear(s + "\r\n")
	}
	close(next)
	c.hear("0\r\n\r\n")
	c.say(post("", "<after/>"))
	c.hear("<after/>")
}

func TestSlowUploadArrivesInTime(t *testing.T) {
	arrived := make(chan string)
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		if h, err := r.head(); err != nil || isOffer(&h) {
			return
		}
		for {
			if len(r.buf) > 0 {
				arrived <- string(r.buf)
				r.buf = nil
			}
			if r.more() != nil {
				return
			}
		}
	})
	near, _ := pair(t, o.url(), nil)
	c := connect(t, near.url())
	c.say("POST /up HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
	for _, s := range []string{"5\r\nhello\r\n", "1\r\n!\r\n", "0\r\n\r\n"} {
		c.say(s)
		var got string
		for len(got) < len(s) {
			got += <-arrived
		}
		assert.Equal(t, s, got)
	}
}

func TestServerThatSpeaksFirst(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.WriteString(c, "220 ready\r\n")
		r := &requests{conn: c}
		_ = r.more()
		_, _ = c.Write(r.buf)
	})
	near, _ := pair(t, o.url(), func(c *settings) { c.Silence = 50 * time.Millisecond })
	c := connect(t, near.url())
	c.hear("220 ready\r\n")
	c.say("HELO")
	assert.Equal(t, "HELO", c.rest())
}

func TestEndsThatSpeakForThemselves(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(chunkedReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	s, err := session.Dial(t.Context(), far.url().String(), session.Config{
		Transports: map[string]streamer.Transport{"tcp": tcp.Transport{}}, Store: store,
		Coders: coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store})), RequireHHFR: true,
	})
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	reply, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(envelope)))
	require.NoError(t, err)
	body, err := reply.ReadAll(1 << 20)
	require.NoError(t, err)
	assert.Equal(t, envelope, string(body))
	assert.Equal(t, "HTTP/1.1 200 OK\r\n\r\n", string(reply.Head))
	require.Len(t, o.received(), 1)
	assert.Contains(t, o.received()[0], "POST /service HTTP/1.1\r\n")
	assert.Contains(t, o.received()[0], fmt.Sprintf("Content-Length: %d\r\n", len(envelope)))
	assert.Contains(t, o.received()[0], "Host: "+o.l.Addr().String()+"\r\n")
}

// The upstream gets what was sent, also where an endpoint and a proxy before it, near or far, have
// agreed on unchanging headers.
func TestHeadersOfEndsThatSpeakForThemselves(t *testing.T) {
	const block = `<t:Tenant xmlns:t="urn:example:tenant">7</t:Tenant>`
	const message = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header>` + block +
		`</s:Header><s:Body><op/></s:Body></s:Envelope>`
	for _, proxies := range []int{1, 2} {
		o := startOrigin(t, "127.0.0.1:0", server(chunkedReply))
		next := startProxy(t, "127.0.0.1:0", o.url(), nil)
		if proxies == 2 {
			next = startProxy(t, "127.0.0.1:0", next.url(), nil)
		}
		store := memory.New(memory.Config{})
		s, err := session.Dial(t.Context(), next.url().String(), session.Config{
			Transports: map[string]streamer.Transport{"tcp": tcp.Transport{}}, Store: store, RequireHHFR: true,
			Headers: []string{block},
		})
		require.NoError(t, err)
		for n := range 2 {
			reply, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(message)))
			require.NoError(t, err)
			body, err := reply.ReadAll(1 << 20)
			require.NoError(t, err)
			assert.Equal(t, message, string(body))
			assert.EqualValues(t, n+1, s.HeadersTaken())
		}
		got := strings.Join(o.received(), "")
		assert.Equal(t, 2, strings.Count(got, message), "%s", got)
		assert.Equal(t, 2, strings.Count(got, fmt.Sprintf("Content-Length: %d\r\n", len(message))))
		require.NoError(t, s.Close())
		require.NoError(t, store.Close())
	}
}

// atSession is a log that calls a function when a session is logged.
type atSession struct {
	slog.Handler
	f func()
}

func (h atSession) Enabled(context.Context, slog.Level) bool { return true }

func (h atSession) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "session" {
		h.f()
	}
	return nil
}

// TestCloseWhileASessionIsOpened: a session that is opened just as the proxy is closed is closed as
// well.
func TestCloseWhileASessionIsOpened(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.Transports = map[string]streamer.Transport{}
	})
	opened, closed := make(chan struct{}), make(chan struct{})
	near := startOffering(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.Log = slog.New(atSession{slog.DiscardHandler, func() {
			close(opened)
			<-closed
		}})
	})
	<-opened
	ended := make(chan error, 1)
	go func() { ended <- near.Close() }()
	require.Eventually(t, near.OpensNoMore, patience, time.Millisecond)
	close(closed)
	require.NoError(t, <-ended)
}

// TestUpstreamThatIsItself: a proxy that is its own upstream, by whatever address, says so to each
// client, and takes no place for it.
func TestUpstreamThatIsItself(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", listen)
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		to := &url.URL{Scheme: "http", Host: "127.0.0.1:" + port, Path: "/service"}
		var said warnings
		p := startProxy(t, "127.0.0.1:0", to, func(c *settings) {
			require.NoError(t, c.Listen.Close())
			c.Listen, c.MaxConns = l, 64
			c.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
		})
		require.Error(t, p.Linked(t.Context()))
		for range 8 {
			c := connect(t, to)
			c.say(post("", envelope))
			got := c.rest()
			assert.True(t, strings.HasPrefix(got, "HTTP/1.1 502 "), "%q", got)
			assert.Contains(t, got, "the upstream is this proxy itself; the request was not sent")
		}
		of := func(l string) bool { return !strings.Contains(l, "is this proxy itself") } // else it came around
		assert.Len(t, slices.DeleteFunc(said.lines(), of), 1, "%q", said.lines())
	}
}
