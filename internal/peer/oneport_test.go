package peer_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// post is plain SOAP of a client that knows nothing of hhfr.
func post(t *testing.T, client *http.Client, url string) (status int, body string) {
	t.Helper()
	resp, err := client.Post(url, "text/xml", strings.NewReader("<plain/>"))
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}

// One number serves plain SOAP, streams over TCP and streams over UDP; with TLS, all but UDP inside
// it, and descriptions name https. Sessions, streams and HTTP connections are each seen by a
// recorder, inside.
func TestOneAddress(t *testing.T) {
	a := shared.NewAuthority(t)
	own := &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}
	trust := &tls.Config{RootCAs: a.Pool()}
	for _, secure := range []bool{false, true} {
		var mu sync.Mutex
		var first []byte // of each connection
		s := startWith(t, func(c *peer.Config) {
			datagrams, err := udp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
			require.NoError(t, err)
			c.Streams = map[string]net.Listener{"udp": datagrams}
			if secure {
				c.TLS = own
			}
			c.WrapConn = func(conn net.Conn) net.Conn {
				return &first1{Conn: conn, note: func(b byte) {
					mu.Lock()
					defer mu.Unlock()
					first = append(first, b)
				}}
			}
		}, peer.Echo(), peer.Sum())
		cfg := config(t, true)
		cfg.HTTPClient.Transport.(*http.Transport).TLSClientConfig = trust
		transport, scheme := "tcp", "http"
		if secure {
			transport, scheme = "tls", "https"
		}
		assert.Equal(t, s.Addrs()["http"], s.Addrs()[transport])
		assert.True(t, strings.HasPrefix(s.URL("/echo"), scheme+"://"))
		for name, tr := range map[string]streamer.Transport{"tcp": tcp.Transport{}, "tls": streamtls.New(trust, nil),
			"udp": udp.Transport{}} {
			status, body := post(t, cfg.HTTPClient, s.URL(peer.EchoPath))
			assert.Equal(t, http.StatusOK, status)
			assert.Equal(t, "<plain/>", body)
			cfg.Transports = map[string]streamer.Transport{name: tr}
			sess, err := session.Dial(t.Context(), s.URL(peer.EchoPath), cfg)
			if name == "udp" && secure || name != "udp" && name != transport {
				require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.NoHHFR}, "%s at %s", name, scheme)
				continue
			}
			require.NoError(t, err)
			facts := sess.Agreed().Facts
			assert.Equal(t, negotiate.TransportURI(name), facts.Transport)
			assert.Equal(t, scheme+"://"+s.Addrs()["http"].String(), facts.Origin)
			_, got, err := exchange(t.Context(), sess, "", strings.NewReader("x"))
			require.NoError(t, err)
			assert.Equal(t, "x", got)
			require.NoError(t, sess.Close())
		}
		resp, err := cfg.HTTPClient.Get(s.URL("/sum") + "?wsdl")
		require.NoError(t, err)
		wsdl, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Contains(t, string(wsdl), "location=\""+scheme+"://")
		cfg.HTTPClient.CloseIdleConnections()
		require.NoError(t, s.Close())
		mu.Lock()
		assert.Contains(t, string(first), "\x01", "a stream, inside")
		assert.Contains(t, string(first), "P", "HTTP, inside")
		assert.NotContains(t, string(first), "\x16")
		mu.Unlock()
	}
}

// first1 notes the first byte that comes.
type first1 struct {
	net.Conn
	once sync.Once
	note func(byte)
}

func (c *first1) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.once.Do(func() { c.note(p[0]) })
	}
	return n, err
}

// Plain HTTP where TLS is taken is told so, and a client learns the scheme from that.
func TestCleartextAtHTTPS(t *testing.T) {
	a := shared.NewAuthority(t)
	s := startWith(t, func(c *peer.Config) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}
	}, peer.Echo())
	url := strings.Replace(s.URL(peer.EchoPath), "https:", "http:", 1)
	cfg := config(t, true)
	status, body := post(t, cfg.HTTPClient, url)
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, body, "takes https only")
	_, err := session.Dial(t.Context(), url, cfg)
	var wrong *session.SchemeError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "https", wrong.Scheme)
}

// Clients that know beforehand speak HTTP/2 without TLS at the same address, many requests at once
// on one connection, and are limited as others are.
func TestCleartextHTTP2(t *testing.T) {
	s := startWith(t, func(c *peer.Config) { c.Limits.Stall = 200 * time.Millisecond }, peer.Echo(), peer.Sum())
	at := s.Addrs()["http"].String()
	only := new(http.Protocols)
	only.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: only}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			resp, err := client.Post("http://"+at+"/echo", "text/xml", strings.NewReader("<plain/>"))
			if !assert.NoError(t, err) {
				return
			}
			b, err := io.ReadAll(resp.Body)
			assert.NoError(t, errors.Join(err, resp.Body.Close()))
			assert.Equal(t, "<plain/>", string(b))
			assert.Equal(t, 2, resp.ProtoMajor)
		})
	}
	wait.Wait()
	status, body := post(t, http.DefaultClient, "http://"+at+"/echo")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "<plain/>", body, "by HTTP/1.1")

	out, in := io.Pipe()
	defer in.Close()
	resp, err := client.Post("http://"+at+"/sum", "text/xml", out)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, http.StatusRequestTimeout, resp.StatusCode, "a body that does not come")
}

// Where HTTP takes no streams offers are refused, unless there is another address.
func TestPlainOnly(t *testing.T) {
	s := startWith(t, func(c *peer.Config) { c.PlainOnly = true }, peer.Echo())
	_, err := session.Dial(t.Context(), s.URL(peer.EchoPath), config(t, true))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.NoHHFR})
	assert.Len(t, s.Addrs(), 1)
	elsewhere := listen(t)
	s = startWith(t, func(c *peer.Config) {
		c.PlainOnly, c.Streams = true,
			map[string]net.Listener{"tcp": elsewhere}
	}, peer.Echo())
	sess := dial(t, s.URL(peer.EchoPath), config(t, true))
	assert.True(t, strings.HasSuffix(elsewhere.Addr().String(), sess.Agreed().Facts.Address))
}

// Half-open connections, of HTTP, TLS or none, take no more than their share, and end with the
// server.
func TestHalfOpenConnections(t *testing.T) {
	a := shared.NewAuthority(t)
	for _, secure := range []bool{false, true} {
		s := startWith(t, func(c *peer.Config) {
			c.Limits.MaxConns, c.Limits.MaxPerPeer = 64, 40
			if secure {
				c.TLS = &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}
			}
		}, peer.Echo())
		cfg := config(t, false)
		cfg.HTTPClient.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: a.Pool()}
		for i := range 39 {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addrs()["http"].String())
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			_, err = io.WriteString(conn, []string{"", "\x16\x03", "\x01HH", "\x16"}[i%4])
			require.NoError(t, err)
		}
		for range 3 {
			status, _ := post(t, cfg.HTTPClient, s.URL(peer.EchoPath))
			assert.Equal(t, http.StatusOK, status)
		}
		cfg.HTTPClient.CloseIdleConnections()
	}
}
