package oneport_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/shared"
)

func clientOf(a *shared.Authority, protocols ...string) *tls.Config {
	return &tls.Config{RootCAs: a.Pool(), NextProtos: protocols}
}

func (w *world) secure(cfg *tls.Config) *tls.Conn {
	w.t.Helper()
	conn, err := (&tls.Dialer{Config: cfg}).DialContext(w.t.Context(), "tcp", w.addr)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn.(*tls.Conn)
}

// In TLS the selected protocol decides, and without one the first bytes.
func TestTLS(t *testing.T) {
	a := shared.NewAuthority(t)
	cert := a.Issue(time.Hour, "127.0.0.1")
	w := start(t, oneport.Config{TLS: &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: a.Pool(), ClientAuth: tls.VerifyClientCertIfGiven,
	}})
	stream := string(hello) + "and what follows"
	for name, tc := range map[string]struct {
		protocols          []string
		says, want, chosen string
	}{
		"stream by ALPN":        {[]string{"hhfr/1", "h2", "http/1.1"}, stream, "stream " + stream, "hhfr/1"},
		"stream of other bytes": {[]string{"hhfr/1"}, request, "stream " + request, "hhfr/1"},
		"http by ALPN":          {[]string{"h2", "http/1.1"}, request, "HTTP/1.1 words tls=true", "http/1.1"},
		"no stream by http":     {[]string{"http/1.1"}, stream, "400 Bad Request", "http/1.1"},
		"http without ALPN":     {nil, request, "HTTP/1.1 words tls=true", ""},
		"stream without ALPN":   {nil, stream, "stream " + stream, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn := w.secure(clientOf(a, tc.protocols...))
			assert.Equal(t, tc.chosen, conn.ConnectionState().NegotiatedProtocol)
			assert.Contains(t, says(t, conn, []byte(tc.says)), tc.want)
		})
	}
	for _, protocols := range [][]string{nil, {"http/1.1"}} {
		cfg := clientOf(a, protocols...)
		cfg.Certificates = []tls.Certificate{cert}
		assert.Contains(t, says(t, w.secure(cfg), []byte(request)), "peer=test",
			"net/http sees the client's certificate")
	}
	older := clientOf(a, "hhfr/1", "http/1.1")
	older.MaxVersion = tls.VersionTLS12
	assert.Contains(t, says(t, w.secure(older), []byte(request)), "HTTP/1.1 words", "streams have TLS 1.3")
	_, err := (&tls.Dialer{Config: clientOf(a, "other")}).DialContext(t.Context(), "tcp", w.addr)
	require.ErrorContains(t, err, "no application protocol")
}

// HTTP/2 is spoken if the configuration has it, since net/http gets the connection in the form it
// needs.
func TestHTTP2(t *testing.T) {
	a := shared.NewAuthority(t)
	w := start(t, oneport.Config{TLS: &tls.Config{
		Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}, NextProtos: []string{"h2", "http/1.1"},
	}})
	transport := &http.Transport{TLSClientConfig: clientOf(a), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post("https://"+w.addr, "text/plain", strings.NewReader("words"))
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Contains(t, string(body), "HTTP/2.0 words tls=true")
	assert.Equal(t, "stream x", says(t, w.secure(clientOf(a, "hhfr/1", "h2")), []byte("x")))
}

// Without streams, all is HTTP's.
func TestNoStreams(t *testing.T) {
	w := start(t, oneport.Config{NoStreams: true})
	assert.Contains(t, says(t, w.dial(), hello), "400 Bad Request")
	assert.Contains(t, says(t, w.dial(), []byte(request)), "HTTP/1.1 words")
	a := shared.NewAuthority(t)
	w = start(t, oneport.Config{NoStreams: true,
		TLS: &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}})
	assert.Contains(t, says(t, w.secure(clientOf(a, "hhfr/1", "http/1.1")), []byte(request)), "HTTP/1.1 words tls=true")
	assert.Contains(t, says(t, w.secure(clientOf(a)), hello), "400 Bad Request")
}

// A configuration that is chosen for each client has streams, too, and session tickets resume its
// sessions.
func TestConfigForClient(t *testing.T) {
	a := shared.NewAuthority(t)
	own := &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}
	w := start(t, oneport.Config{TLS: &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return own, nil
	}}})
	cfg := clientOf(a, "hhfr/1")
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for times := range 3 {
		conn := w.secure(cfg)
		assert.Equal(t, "stream x", says(t, conn, []byte("x")))
		assert.Equal(t, times > 0, conn.ConnectionState().DidResume)
	}
}

// A port that takes TLS only serves nothing else: HTTP is told why, a stream is closed.
func TestCleartextWhereTLSIsTaken(t *testing.T) {
	a := shared.NewAuthority(t)
	var logged lines
	w := start(t, oneport.Config{
		TLS: &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}},
		Log: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	for _, pieces := range [][][]byte{{[]byte(request)}, bytewise([]byte(request))} {
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(says(t, w.dial(), pieces...))), nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, resp.StatusCode)
		assert.Equal(t, "hhfr: this address takes https only\n", string(body))
	}
	conn := w.dial()
	_, err := conn.Write(hello)
	require.NoError(t, err)
	got, _ := io.ReadAll(conn)
	assert.Empty(t, got)
	assert.Contains(t, logged.String(), "cleartext where only TLS is taken")
	_, err = (&tls.Dialer{Config: &tls.Config{}}).DialContext(t.Context(), "tcp", w.addr)
	require.Error(t, err)
	require.Eventually(t, func() bool {
		return strings.Count(logged.String(), "msg=handshake") == 4
	}, time.Minute, time.Millisecond)
}
