package session_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// A session reports how it was negotiated, which modes were tried, and that a call is still to ask.
func TestSessionTellsItsMode(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), false, nil)
	cfg := d.config(negotiate.Auto)
	cfg.Shapes = [][32]byte{{1}} // would be offered first, and are no reason for an offer
	first := dial(t, d.url, cfg)
	assert.True(t, first.Agreed().Undecided)
	assert.NotEmpty(t, first.Agreed().Why)
	say(t, first, "one")
	agreed := first.Agreed()
	assert.False(t, agreed.Undecided)
	assert.Equal(t, negotiate.FirstCall, agreed.Mode)
	require.Len(t, agreed.Tried, 1)
	assert.Equal(t, negotiate.TransportURI("upgrade"), agreed.Tried[0].Transport)
	assert.Empty(t, agreed.Tried[0].Why)
	require.NoError(t, first.Close())

	spent := copyOf(t, cfg.Store)
	remembered, err := session.Remembered(t.Context(), cfg.Store, d.url)
	require.NoError(t, err)
	assert.Equal(t, agreed.Facts.Session, remembered.Met.Session)
	assert.Empty(t, remembered.Plain)
	again := dial(t, d.url, cfg)
	assert.Equal(t, negotiate.Met, again.Agreed().Mode)
	say(t, again, "two")
	require.NoError(t, again.Close())

	cfg.Store = spent
	late := dial(t, d.url, cfg)
	say(t, late, "three")
	agreed = late.Agreed()
	assert.Equal(t, negotiate.FirstCall, agreed.Mode)
	require.Len(t, agreed.Tried, 2)
	assert.Equal(t, negotiate.Met, agreed.Tried[0].Mode)
	assert.NotEmpty(t, agreed.Tried[0].Why)
	require.NoError(t, late.Close())

	cfg = d.config(negotiate.Auto)
	cfg.Lifetime = time.Minute
	offered := dial(t, d.url, cfg)
	assert.Equal(t, negotiate.Explicit, offered.Agreed().Mode)
	require.NoError(t, offered.Close())
}

// A setting that only an offer can express is not dropped silently.
func TestFirstCallCannotAskForAll(t *testing.T) {
	for name, change := range map[string]func(*session.Config){
		"order":          func(c *session.Config) { c.Ordered = true },
		"lifetime":       func(c *session.Config) { c.Lifetime = time.Minute },
		"representation": func(c *session.Config) { c.Representations = []string{"xml"} },
		"headers":        func(c *session.Config) { c.Headers = []string{`<t:tenant xmlns:t="urn:t"/>`} },
		"transport":      func(c *session.Config) { c.Transports = map[string]streamer.Transport{} },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := session.Config{Mode: negotiate.FirstCall}
			change(&cfg)
			_, err := session.Dial(t.Context(), "http://127.0.0.1:1/", cfg)
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.BadConfig})
			assert.ErrorContains(t, err, "a first call cannot ask for "+map[string]string{
				"order": "an assurance or order", "lifetime": "a lifetime",
				"representation": "a representation other than binary",
				"headers":        "unchanging headers", "transport": "a transport other than tcp",
			}[name])
		})
	}
}

// A first call to a server of the other scheme has reached no service: that is neither plain SOAP,
// nor remembered as such.
func TestFirstCallToWrongSchemeIsNotRemembered(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	store := memory.New(memory.Config{})
	address := "http" + server.URL[len("https"):]
	s := dial(t, address,
		session.Config{Mode: negotiate.FirstCall, Store: store, HTTPClient: &http.Client{Transport: &http.Transport{}}})
	_, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte("<e/>")))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unreachable})
	assert.True(t, s.Agreed().Undecided)
	require.NoError(t, s.Close())
	m, err := session.Remembered(t.Context(), store, address)
	require.NoError(t, err)
	assert.Empty(t, m)
	assert.Zero(t, calls.Load())
}

// OnSession gets, for a connection that was upgraded, the connection that was dialed, and how much
// of it is the stream's.
func TestUpgradedConnectionIsShared(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), false, nil)
	cfg := d.config(negotiate.FirstCall)
	dialed := make(chan net.Conn, 1)
	cfg.OnSession = func(_ negotiate.Facts, c net.Conn) { dialed <- c }
	s := dial(t, d.url, cfg)
	say(t, s, "one")
	conn := <-dialed
	require.NoError(t, s.Close())
	below, ok := conn.(interface{ NetConn() net.Conn })
	require.True(t, ok)
	assert.IsType(t, &net.TCPConn{}, below.NetConn())
	stats := s.Stream().Stats()
	sent, received := conn.(interface{ Carried() (sent, received int64) }).Carried()
	assert.Equal(t, stats.Sent.Octets(), sent)
	assert.Equal(t, stats.Received.Octets(), received)
}

// A server that goes away while a session is joined again is asked until it is back, without a call
// that would fail.
func TestMetServerThatIsAway(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), false, nil)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var away atomic.Int64 // so many connections are reset
	var wait sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		wait.Wait()
	})
	at, err := url.Parse(d.url)
	require.NoError(t, err)
	wait.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			if away.Add(-1) >= 0 {
				_, _ = io.ReadFull(client, make([]byte, 16)) // of the hello
				_ = client.(*net.TCPConn).SetLinger(0)
				_ = client.Close()
				continue
			}
			server, err := net.Dial("tcp", at.Host)
			if !assert.NoError(t, err) {
				return
			}
			for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
				context.AfterFunc(ctx, func() { _ = pair[0].Close() })
				wait.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].(*net.TCPConn).CloseWrite()
				})
			}
		}
	})
	cfg := d.config(negotiate.Auto)
	cfg.Reconnect = time.Minute
	u := "http://" + l.Addr().String() + "/soap"
	first := dial(t, u, cfg)
	say(t, first, "one")
	require.NoError(t, first.Close())
	away.Store(1)
	s := dial(t, u, cfg)
	require.Eventually(t, func() bool { return s.Agreed().Mode == negotiate.FirstCall }, 20*time.Second,
		10*time.Millisecond)
	say(t, s, "two")
	assert.True(t, s.Agreed().HHFR)
	require.NoError(t, s.Close())
}
