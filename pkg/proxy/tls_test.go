package proxy_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/proxy"
)

// secureOrigin is a server behind TLS; its certificate, and whom it trusts, do for proxies as well.
func secureOrigin(t *testing.T) (upstream *url.URL, own, trust *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte("you said "), b...))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL + "/service")
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return u, &tls.Config{Certificates: s.TLS.Certificates}, &tls.Config{RootCAs: roots}
}

func TestTLSUpstream(t *testing.T) {
	u, _, trust := secureOrigin(t)
	near, _ := pair(t, u, func(c *proxy.Config) { c.TLS = trust })
	c := connect(t, near.url())
	c.say(post("Connection: close\r\n", envelope))
	assert.Contains(t, c.rest(), "you said "+envelope)
}

func TestUpstreamThatIsNotTrusted(t *testing.T) {
	u, _, _ := secureOrigin(t)
	near, _ := pair(t, u, nil)
	c := connect(t, near.url())
	c.say(post("", envelope))
	got := c.rest()
	assert.True(t, strings.HasPrefix(got, "HTTP/1.1 502 "), "%q", got)
	assert.Contains(t, got, "the request was not sent")
}

// seen is what a recorder sees of the connections of a proxy.
type seen struct {
	net.Conn
	mu  *sync.Mutex
	all *bytes.Buffer
}

func (s seen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Write(p)
	return s.Conn.Write(p)
}

// TestTLSEverywhere: clients, the offer and the upstream are behind TLS; a stream is agreed on where cleartext is allowed for it, and a recorder sees what is inside.
func TestTLSEverywhere(t *testing.T) {
	u, own, trust := secureOrigin(t)
	secure := func(c *proxy.Config) { c.Listen, c.TLS = tls.NewListener(c.Listen, own), trust }
	far := startProxy(t, "127.0.0.1:0", u, secure)
	between := far.url()
	between.Scheme = "https"
	for _, cleartext := range []bool{true, false} {
		var mu sync.Mutex
		var link bytes.Buffer
		sessions := 0
		near := startProxy(t, "127.0.0.1:0", between, func(c *proxy.Config) {
			secure(c)
			c.AllowCleartext = cleartext
			c.WrapDialed = func(conn net.Conn) net.Conn { return seen{conn, &mu, &link} }
			c.OnSession = func(negotiate.Facts, net.Conn) { sessions++ }
		})
		conn, err := (&tls.Dialer{Config: trust}).DialContext(t.Context(), "tcp", near.Addrs()["http"].String())
		require.NoError(t, err)
		_, err = io.WriteString(conn, post("Connection: close\r\n", envelope))
		require.NoError(t, err)
		got, err := io.ReadAll(conn)
		require.NoError(t, err)
		assert.Contains(t, string(got), "you said "+envelope)
		require.NoError(t, conn.Close())
		require.NoError(t, near.Close())
		mu.Lock()
		assert.Equal(t, cleartext, strings.Contains(link.String(), "POST /service HTTP/1.1\r\n"), "an offer")
		assert.Equal(t, cleartext, sessions == 1, "a stream")
		assert.Equal(t, !cleartext, strings.Contains(link.String(), envelope), "plainly")
		mu.Unlock()
	}
}

func TestHTTPWhereTLSIsTaken(t *testing.T) {
	u, own, _ := secureOrigin(t)
	p := startProxy(t, "127.0.0.1:0", u, func(c *proxy.Config) { c.Listen = tls.NewListener(c.Listen, own) })
	c := connect(t, p.url())
	c.say(post("", envelope))
	got := c.rest()
	assert.True(t, strings.HasPrefix(got, "HTTP/1.1 400 "), "%q", got)
	assert.Contains(t, got, "https only")
}

// TestReplyCutShortBehindTLS: a client behind TLS must not take the end of a broken upstream connection for that of the reply.
func TestReplyCutShortBehindTLS(t *testing.T) {
	_, own, trust := secureOrigin(t)
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		if h, err := r.head(); err != nil || strings.Contains(string(h.Octets), "negotiation") {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\nonly this")
		_ = c.(*originConn).Conn.(*net.TCPConn).SetLinger(0)
	})
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *proxy.Config) { c.Listen = tls.NewListener(c.Listen, own) })
	conn, err := (&tls.Dialer{Config: trust}).DialContext(t.Context(), "tcp", near.Addrs()["http"].String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, post("", envelope))
	require.NoError(t, err)
	if got, err := io.ReadAll(conn); err == nil {
		assert.True(t, strings.HasPrefix(string(got), "HTTP/1.1 502 "), "%q", got)
	}
}
