//go:build interop

package middleboxes_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

const (
	patience = 20 * time.Second
	tick     = 5 * time.Millisecond
)

// origin is a server with one address for plain SOAP and streams, and a store of its own.
type origin struct {
	addr, port string

	mu    sync.Mutex
	calls map[string]int // number of arrivals of each body
	asked int            // requests with the field that asks for a stream
}

// startOrigin starts one at a host of the loopback, in TLS if secure is given. If a client asks at
// 127.0.0.1, the port of an origin at 127.0.0.2 is reachable only through what is between them.
func startOrigin(t *testing.T, host string, secure *tls.Config, change func(*responder.Config)) *origin {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	return serve(t, l, secure, change)
}

// serve starts an origin at a listener.
func serve(t *testing.T, l net.Listener, secure *tls.Config, change func(*responder.Config)) *origin {
	t.Helper()
	o := &origin{addr: l.Addr().String(), calls: map[string]int{}}
	var err error
	_, o.port, err = net.SplitHostPort(o.addr)
	require.NoError(t, err)
	transport := "tcp"
	if secure != nil {
		transport = "tls"
	}
	cfg := responder.Config{
		Store: memory.New(memory.Config{}), Addresses: map[string]string{transport: ":" + o.port}, OnStream: greet,
		Sequenced: sequenced{o},
	}
	if change != nil {
		change(&cfg)
	}
	h, err := responder.NewHandler(o.services(), cfg)
	require.NoError(t, err)
	p := oneport.New(l, oneport.Config{TLS: secure})
	server := &http.Server{Handler: o.count(h), ReadHeaderTimeout: time.Minute}
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Serve(p.HTTP()) })
	wait.Go(func() { _ = h.ServeStreams(context.Background(), p.Streams()) })
	t.Cleanup(func() {
		_ = h.Close()
		_ = server.Close()
		_ = p.Close()
		wait.Wait()
	})
	return o
}

// greet sends a server-initiated message to each stream.
func greet(_ negotiate.Facts, stream *streamer.Stream) {
	go func() {
		_ = stream.Lane(1).Send(context.Background(), streamer.NewMessage(nil, []byte("<greeting/>")))
	}()
}

func (o *origin) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(negotiate.Field) != "" {
			o.mu.Lock()
			o.asked++
			o.mu.Unlock()
		}
		h.ServeHTTP(w, r)
	})
}

// services are an echo at /soap, and at /lines one that answers each line before the next one is
// sent.
func (o *origin) services() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/soap", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		o.note(body)
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = w.Write(body)
	})
	mux.HandleFunc("/lines", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			_, _ = fmt.Fprintln(w, lines.Text())
			_ = http.NewResponseController(w).Flush()
		}
	})
	return mux
}

func (o *origin) note(body []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls[string(body)]++
}

// once checks that each of n calls arrived exactly once.
func (o *origin) once(t *testing.T, n int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	assert.Len(t, o.calls, n)
	for body, count := range o.calls {
		assert.Equal(t, 1, count, body)
	}
}

// client is a client's own state.
type client struct {
	cfg session.Config
	log *journal

	mu     sync.Mutex
	greets int
	next   int // number of the next call
}

// newClient creates one that uses an HTTP transport.
func newClient(t *testing.T, mode negotiate.Mode, transport *http.Transport) *client {
	t.Helper()
	c := &client{log: newJournal()}
	t.Cleanup(transport.CloseIdleConnections)
	c.cfg = session.Config{
		Mode: mode, Store: memory.New(memory.Config{}), Timeout: 5 * time.Second, Reconnect: patience,
		Log: c.log.logger(),
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		Handler: func(_ context.Context, x *streamer.Exchange) {
			if _, err := x.Message().ReadAll(1 << 10); err == nil {
				c.mu.Lock()
				c.greets++
				c.mu.Unlock()
			}
		},
	}
	return c
}

func (c *client) dial(t *testing.T, url string) *session.Session {
	t.Helper()
	s, err := session.Dial(t.Context(), url, c.cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// say sends a unique call, and checks its echo.
func (c *client) say(t *testing.T, s *session.Session) {
	t.Helper()
	text := c.text()
	got, err := exchange(t, s, nil, text)
	require.NoError(t, err)
	assert.Equal(t, text, got)
}

func (c *client) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><call>%d</call>`+
		`</s:Body></s:Envelope>`, c.next)
}

func exchange(t *testing.T, s *session.Session, head []byte, text string) (string, error) {
	t.Helper()
	m, err := s.Call(t.Context(), streamer.NewMessage(head, []byte(text)))
	if err != nil {
		return "", err
	}
	got, err := m.ReadAll(1 << 20)
	if c, ok := m.Body.(io.Closer); ok {
		_ = c.Close()
	}
	return string(got), err
}

// streams waits until there is a stream over that transport.
func streams(t *testing.T, s *session.Session, transport string) {
	t.Helper()
	var last negotiate.Agreed
	if !assert.Eventually(t, func() bool {
		last = s.Agreed()
		return s.Stream() != nil && last.HHFR && last.Facts.Transport == negotiate.TransportURI(transport)
	}, patience, tick) {
		t.Fatalf("%+v", last)
	}
}

// plain waits until it is clear that there is no stream, and checks why.
func plain(t *testing.T, s *session.Session, why string) {
	t.Helper()
	if !assert.Eventually(t, func() bool { return strings.Contains(s.Agreed().Why, why) }, patience, tick) {
		t.Fatalf("%+v", s.Agreed())
	}
	assert.False(t, s.Agreed().HHFR)
}

// bothWays checks that each line of a request is answered before the next one is written, and that
// messages that the peer begins arrive.
func (c *client) bothWays(t *testing.T, s *session.Session) {
	t.Helper()
	r, w := io.Pipe()
	replied := make(chan error, 1)
	lines := make(chan string)
	head := []byte("POST /lines HTTP/1.1\r\nContent-Type: text/xml\r\n\r\n")
	go func() {
		m, err := s.Call(t.Context(), &streamer.Message{Head: head, Body: r})
		if err == nil {
			scan := bufio.NewScanner(m.Body)
			for scan.Scan() {
				lines <- scan.Text()
			}
			err = scan.Err()
		}
		replied <- err
	}()
	for i := range 5 {
		_, err := fmt.Fprintln(w, "<line>", i, "</line>")
		require.NoError(t, err)
		select {
		case got := <-lines:
			assert.Equal(t, strings.TrimSuffix(fmt.Sprintln("<line>", i, "</line>"), "\n"), got)
		case err := <-replied:
			require.NoError(t, err)
			t.Fatal("the reply ended")
		case <-time.After(patience):
			t.Fatal("a line that was flushed did not arrive")
		}
	}
	require.NoError(t, w.Close())
	require.NoError(t, <-replied)
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.greets > 0
	}, patience, tick, "what the server began did not arrive")
}

// upgrades makes a session by each of n first calls at a URL, and holds that its connection is
// upgraded.
func (c *client) upgrades(t *testing.T, o *origin, url string, n int) {
	t.Helper()
	for range n {
		s := c.dial(t, url)
		c.say(t, s)
		streams(t, s, "upgrade")
		c.bothWays(t, s)
		c.say(t, s)
		require.NoError(t, s.Close())
	}
	o.once(t, 2*n)
	c.log.silent(t)
}

// upgradesOnce holds that a call at a URL upgrades its connection.
func (c *client) upgradesOnce(t *testing.T, o *origin, url string) {
	t.Helper()
	s := c.dial(t, url)
	c.say(t, s)
	streams(t, s, "upgrade")
	c.bothWays(t, s)
	o.once(t, 1)
	c.log.silent(t)
}

// through is a transport that connects directly to a URL.
func through() *http.Transport { return &http.Transport{} }

// trusting is one that trusts a test's authority, with HTTP/2 or without.
func trusting(cfg *tls.Config, h2 bool) *http.Transport {
	return &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: h2}
}

// plainAlways checks that calls go as plain SOAP, each once, and that a later session remembers
// that.
func plainAlways(t *testing.T, o *origin, c *client, url, why string) {
	t.Helper()
	s := c.dial(t, url)
	c.say(t, s)
	plain(t, s, why)
	for range 3 {
		c.say(t, s)
	}
	require.NoError(t, s.Close())
	s = c.dial(t, url)
	assert.True(t, s.Agreed().Remembered, s.Agreed().Why)
	c.say(t, s)
	o.once(t, 5)
}

// sequenced is the echo for messages that come in sequences.
type sequenced struct{ o *origin }

func (sequenced) Transactional(string) bool { return false }

func (sequenced) Transact(context.Context, string, *wsrm.Tx, *streamer.Message) (*streamer.Message, error) {
	return nil, errors.New("no transactions here")
}

func (s sequenced) Handle(_ context.Context, _ string, request *streamer.Message) *streamer.Message {
	body, err := request.ReadAll(1 << 20)
	if err != nil {
		return nil
	}
	s.o.note(body)
	return streamer.NewMessage(nil, body)
}
