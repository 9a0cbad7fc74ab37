package proxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// secureOrigin is a server that speaks TLS; its certificate and trusted roots also serve proxies.
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
	near, _ := pair(t, u, func(c *settings) { c.TLS = trust })
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

func TestHTTPWhereTLSIsTaken(t *testing.T) {
	u, own, _ := secureOrigin(t)
	p := startProxy(t, "127.0.0.1:0", u, func(c *settings) { c.ListenTLS = own })
	c := connect(t, p.url())
	c.say(post("", envelope))
	got := c.rest()
	assert.True(t, strings.HasPrefix(got, "HTTP/1.1 400 "), "%q", got)
	assert.Contains(t, got, "https only")
}

// TestReplyCutShortBehindTLS: a client in TLS must not take the end of a broken upstream connection
// for that of the reply.
func TestReplyCutShortBehindTLS(t *testing.T) {
	_, own, trust := secureOrigin(t)
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		if h, err := r.head(); err != nil || isOffer(&h) {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\nonly this")
		_ = c.(*originConn).Conn.(*net.TCPConn).SetLinger(0)
	})
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) { c.ListenTLS = own })
	conn, err := (&tls.Dialer{Config: trust}).DialContext(t.Context(), "tcp", near.Addrs()["http"].String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, post("", envelope))
	require.NoError(t, err)
	if got, err := io.ReadAll(conn); err == nil {
		assert.True(t, strings.HasPrefix(string(got), "HTTP/1.1 502 "), "%q", got)
	}
}
