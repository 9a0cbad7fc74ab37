package session_test

import (
	"bytes"
	"context"
	cryptotls "crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// door is a server with one address for all, in TLS with a config.
type door struct {
	url     string
	store   ctxstore.Store
	handler *responder.Handler
	conns   atomic.Int64 // that were accepted
	octets  atomic.Int64 // that they carried, both ways
	client  *http.Transport
	close   func()
}

// countingListener counts the connections that are accepted, and their bytes.
type countingListener struct {
	net.Listener
	n, octets *atomic.Int64
}

func (c countingListener) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
		conn = countedConn{conn, c.octets}
	}
	return conn, err
}

func open(t testing.TB, service http.Handler, secure bool, change func(*responder.Config)) *door {
	t.Helper()
	return openAt(t, "127.0.0.1:0", service, secure, change)
}

// openAt is open at an address.
func openAt(
	t testing.TB, address string, service http.Handler, secure bool, change func(*responder.Config),
) *door {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	d := &door{url: "http://127.0.0.1:" + port + "/soap", store: memory.New(memory.Config{}), client: &http.Transport{}}
	one, transport := oneport.Config{}, "tcp"
	if secure {
		authority := shared.NewAuthority(t)
		one.TLS = &cryptotls.Config{Certificates: []cryptotls.Certificate{authority.Issue(time.Hour, "127.0.0.1")}}
		d.client.TLSClientConfig = &cryptotls.Config{RootCAs: authority.Pool()}
		d.client.ForceAttemptHTTP2 = true
		d.url, transport = strings.Replace(d.url, "http:", "https:", 1), "tls"
	}
	cfg := responder.Config{Store: d.store, Addresses: map[string]string{transport: ":" + port}}
	if change != nil {
		change(&cfg)
	}
	d.handler, err = responder.NewHandler(service, cfg)
	require.NoError(t, err)
	p := oneport.New(countingListener{l, &d.conns, &d.octets}, one)
	server := &http.Server{Handler: d.handler, ReadHeaderTimeout: time.Minute}
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Serve(p.HTTP()) })
	wait.Go(func() { _ = d.handler.ServeStreams(context.Background(), p.Streams()) })
	d.close = sync.OnceFunc(func() {
		d.client.CloseIdleConnections()
		_ = d.handler.Close()
		_ = server.Close()
		_ = p.Close()
		wait.Wait()
	})
	t.Cleanup(d.close)
	return d
}

// newServer returns a server of net/http, and a client for it.
func newServer(h http.Handler, secure, h2 bool) (*httptest.Server, *http.Transport) {
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = h2
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	return server, server.Client().Transport.(*http.Transport).Clone()
}

// copyOf returns a store with the same entries.
func copyOf(t testing.TB, store ctxstore.Store) ctxstore.Store {
	t.Helper()
	to := memory.New(memory.Config{})
	for info, err := range store.List(t.Context(), "") {
		require.NoError(t, err)
		entry, err := store.Get(t.Context(), info.URI)
		require.NoError(t, err)
		_, err = to.Put(t.Context(), info.URI, entry.Value, ctxstore.PutOptions{})
		require.NoError(t, err)
	}
	return to
}

// config returns that of a client with a store of its own.
func (d *door) config(mode negotiate.Mode) session.Config {
	return session.Config{Mode: mode, HTTPClient: &http.Client{Transport: d.client}, Store: memory.New(memory.Config{})}
}

func repeat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	w.Header().Set("X-Path", r.URL.Path)
	_, _ = w.Write(body)
}

func say(t testing.TB, s *session.Session, text string) {
	t.Helper()
	m, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte("<e>"+text+"</e>")))
	require.NoError(t, err)
	got, err := m.ReadAll(1 << 20)
	require.NoError(t, err)
	assert.Equal(t, "<e>"+text+"</e>", string(got))
}

func TestFirstCallUpgradesItsConnection(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("secure ", secure), func(t *testing.T) {
			d := open(t, http.HandlerFunc(repeat), secure, nil)
			s := dial(t, d.url, d.config(negotiate.FirstCall))
			assert.False(t, s.Agreed().HHFR, "no call has asked")
			for i := range 10 {
				say(t, s, fmt.Sprint("call ", i))
			}
			assert.Equal(t, int64(1), d.conns.Load(), "one connection for all")
			agreed := s.Agreed()
			require.True(t, agreed.HHFR, agreed.Why)
			assert.Equal(t,
				map[bool]string{false: "urn:hhfr:transport:upgrade", true: "urn:hhfr:transport:tls"}[secure],
				agreed.Facts.Transport)
			require.NoError(t, s.Close())
		})
	}
}

// A service that enables writing while it reads has not replied by that.
func TestFullDuplexIsNoReply(t *testing.T) {
	d := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.NoError(t, http.NewResponseController(w).EnableFullDuplex())
		repeat(w, r)
	}), false, nil)
	s := dial(t, d.url, d.config(negotiate.FirstCall))
	say(t, s, "one")
	assert.True(t, s.Agreed().HHFR, s.Agreed().Why)
	assert.Equal(t, int64(1), d.conns.Load())
	say(t, s, "two")
	require.NoError(t, s.Close())
}

// A Handler in a server that knows nothing of streams has upgrades, in TLS by HTTP/1.1.
func TestHandlerAloneUpgrades(t *testing.T) {
	for _, secure := range []bool{false, true} {
		h, err := responder.NewHandler(http.HandlerFunc(repeat), responder.Config{})
		require.NoError(t, err)
		server, base := newServer(h, secure, false)
		cfg := session.Config{Mode: negotiate.Auto, HTTPClient: &http.Client{Transport: base}}
		for range 2 { // there is no token: every session is a first call
			s := dial(t, server.URL, cfg)
			say(t, s, "one")
			say(t, s, "two")
			assert.True(t, s.Agreed().HHFR, s.Agreed().Why)
			assert.Equal(t, "urn:hhfr:transport:upgrade", s.Agreed().Facts.Transport)
			require.NoError(t, s.Close())
		}
		base.CloseIdleConnections()
		require.NoError(t, h.Close())
		server.Close()
	}
}

// Over HTTP/2 nothing can be upgraded: the answer names the address.
func TestOverHTTP2TheAnswerNamesTheAddress(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), true, nil)
	h, err := responder.NewHandler(http.HandlerFunc(repeat), responder.Config{
		Store: d.store,
		Addresses: map[string]string{
			"tls": strings.TrimSuffix(strings.TrimPrefix(d.url, "https://127.0.0.1"), "/soap"),
		},
	})
	require.NoError(t, err)
	server, base := newServer(h, true, true)
	base.TLSClientConfig.RootCAs = nil
	base.TLSClientConfig.InsecureSkipVerify = true
	s := dial(t, server.URL,
		session.Config{Mode: negotiate.Auto, HTTPClient: &http.Client{Transport: base}, Transports: nil})
	say(t, s, "plain")
	require.Eventually(t, func() bool { return s.Agreed().HHFR }, 5*time.Second, time.Millisecond, s.Agreed().Why)
	say(t, s, "by the stream")
	assert.Equal(t, "urn:hhfr:transport:tls", s.Agreed().Facts.Transport)
	require.NoError(t, s.Close())
	base.CloseIdleConnections()
	server.Close()
	require.NoError(t, h.Close())
}

func TestMetBefore(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for _, first := range []negotiate.Mode{negotiate.Explicit, negotiate.FirstCall, negotiate.Auto} {
			t.Run(fmt.Sprint(first, secure), func(t *testing.T) {
				d := open(t, http.HandlerFunc(repeat), secure, nil)
				cfg := d.config(first)
				if first == negotiate.Explicit { // it remembers for the client that asks for it
					cfg.Mode = negotiate.Auto
					cfg.Lifetime = time.Hour
				}
				s := dial(t, d.url, cfg)
				say(t, s, "first")
				say(t, s, "second")
				require.NoError(t, s.Close())
				sess := s.Agreed().Facts.Session
				for range 3 { // each token admits once, the next comes on the stream
					before := d.conns.Load()
					cfg.Mode, cfg.Lifetime = negotiate.Met, 0
					s = dial(t, d.url, cfg)
					require.True(t, s.Agreed().HHFR, s.Agreed().Why)
					say(t, s, "again")
					assert.Equal(t, sess, s.Agreed().Facts.Session)
					assert.Equal(t, before+1, d.conns.Load())
					require.NoError(t, s.Close())
				}
			})
		}
	}
}

// A client with no session to join, or with a token that is not valid, begins with a first call,
// and nothing is lost or sent twice.
func TestTokenThatDoesNotAdmitIsAFirstCall(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	d := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		mu.Lock()
		seen[string(body)]++
		mu.Unlock()
		_, _ = w.Write(body)
	}), false, nil)
	cfg := d.config(negotiate.Auto)
	s := dial(t, d.url, cfg)
	say(t, s, "before")
	say(t, s, "before too")
	require.NoError(t, s.Close())
	require.NoError(t, d.store.Delete(t.Context(), s.Agreed().Facts.Session.URI(), nil)) // the server forgets
	s = dial(t, d.url, cfg)
	var calls sync.WaitGroup
	for i := range 50 {
		calls.Go(func() { say(t, s, fmt.Sprint("call ", i)) })
	}
	calls.Wait()
	say(t, s, "last")
	assert.True(t, s.Agreed().HHFR, s.Agreed().Why)
	mu.Lock()
	for text, n := range seen {
		assert.Equal(t, 1, n, text)
	}
	assert.Len(t, seen, 53)
	mu.Unlock()
	require.NoError(t, s.Close())
	cfg.Mode = negotiate.Met
	cfg.Store = memory.New(memory.Config{})
	s = dial(t, d.url, cfg)
	assert.Contains(t, s.Agreed().Why, "no session to join again is remembered")
	say(t, s, "plain")
}

// A token admits once, whoever shows it.
func TestTokenAdmitsOnceAcrossNodes(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), false, nil)
	cfg := d.config(negotiate.Auto)
	s := dial(t, d.url, cfg)
	say(t, s, "a")
	require.NoError(t, s.Close())
	copied := copyOf(t, cfg.Store)
	s = dial(t, d.url, cfg)
	say(t, s, "b")
	assert.Equal(t, "urn:hhfr:transport:tcp", s.Agreed().Facts.Transport)
	cfg.Store = copied
	other := dial(t, d.url, cfg)
	say(t, other, "c") // by a first call
	assert.NotEqual(t, s.Agreed().Facts.Session, other.Agreed().Facts.Session)
	require.NoError(t, errors.Join(s.Close(), other.Close()))
}

// eventually and tick bound the wait for what happens concurrently with calls.
const (
	eventually = 5 * time.Second
	tick       = time.Millisecond
)

func message(text string) *streamer.Message { return streamer.NewMessage(nil, []byte(text)) }

// An address that an answer names and that cannot be reached causes one warning, with advice.
func TestBlockedStreamOfAFirstCallIsWarnedOf(t *testing.T) {
	h, err := responder.NewHandler(http.HandlerFunc(repeat),
		responder.Config{Addresses: map[string]string{"tls": deadPort(t)}})
	require.NoError(t, err)
	server, base := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Upgrade") // as intermediaries do
		h.ServeHTTP(w, r)
	}), true, true)
	defer server.Close()
	var log bytes.Buffer
	cfg := session.Config{
		Mode:       negotiate.Auto,
		HTTPClient: &http.Client{Transport: base},
		Log:        slog.New(slog.NewTextHandler(&log, nil)),
	}
	s := dial(t, server.URL, cfg)
	for range 3 {
		say(t, s, "plain")
	}
	require.Eventually(t, func() bool { return s.Agreed().NoStream != "" }, 5*time.Second, time.Millisecond)
	say(t, s, "plain")
	require.NoError(t, errors.Join(s.Close(), h.Close()))
	base.CloseIdleConnections()
	assert.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
	assert.Contains(t, log.String(), session.BlockedHint)
}

// Where a call is not upgraded and the address in its answer cannot be reached, a request of its
// own asks, without a body and by HTTP/1.1.
func TestBlockedStreamIsAskedForByAnotherRequest(t *testing.T) {
	for name, tc := range map[string]struct{ h2, eatsCalls bool }{"HTTP/2": {true, false},
		"upgrades no body": {false, true}} {
		h, err := responder.NewHandler(http.HandlerFunc(repeat),
			responder.Config{Addresses: map[string]string{"tls": deadPort(t)}})
		require.NoError(t, err)
		server, base := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tc.eatsCalls && r.Method == http.MethodPost {
				r.Header.Del("Upgrade")
			}
			h.ServeHTTP(w, r)
		}), true, tc.h2)
		var log bytes.Buffer
		cfg := session.Config{
			Mode:       negotiate.Auto,
			HTTPClient: &http.Client{Transport: base},
			Log:        slog.New(slog.NewTextHandler(&log, nil)),
		}
		s := dial(t, server.URL, cfg)
		say(t, s, "plain")
		require.Eventually(t, func() bool { return s.Agreed().HHFR }, 5*time.Second, time.Millisecond, name)
		say(t, s, "by the stream")
		assert.Equal(t, "urn:hhfr:transport:upgrade", s.Agreed().Facts.Transport, name)
		require.NoError(t, errors.Join(s.Close(), h.Close()))
		base.CloseIdleConnections()
		server.Close()
		assert.NotContains(t, log.String(), "level=WARN", name)
	}
}
