package main

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// connFrom is a connection from an address of this machine.
type connFrom struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dialFrom(t *testing.T, from string, to *url.URL, roots *tls.Config) *connFrom {
	t.Helper()
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Minute}
	var c net.Conn
	var err error
	if to.Scheme == "https" {
		c, err = (&tls.Dialer{NetDialer: d, Config: roots}).DialContext(t.Context(), "tcp", to.Host)
	} else {
		c, err = d.DialContext(t.Context(), "tcp", to.Host)
	}
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	t.Cleanup(func() { _ = c.Close() })
	return &connFrom{t, c, bufio.NewReader(c)}
}

// call makes a call that is long enough for a server that does not read it to reset the connection.
func (c *connFrom) call(path string) *http.Response {
	c.t.Helper()
	body := envelope(1) + strings.Repeat("\n", 100_000)
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, "http://h"+path, strings.NewReader(body))
	require.NoError(c.t, err)
	r.Header.Set("Content-Type", "text/xml")
	require.NoError(c.t, r.Write(c.Conn))
	reply, err := http.ReadResponse(c.in, r)
	require.NoError(c.t, err)
	_, err = io.Copy(io.Discard, reply.Body)
	require.NoError(c.t, err)
	return reply
}

// listening starts a command that says where it listens, and returns its URL.
func listening(t *testing.T, args ...string) *url.URL {
	t.Helper()
	c := exec.CommandContext(t.Context(), "hhfr", append(args, "-q", "-o", "json")...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	var said struct {
		URL       string
		Addresses map[string]string
	}
	require.NoError(t, json.Unmarshal(line, &said), "%s", line)
	scheme := "http"
	if slices.Contains(args, "--cert") {
		scheme = "https"
	}
	u, err := url.Parse(cmp.Or(said.URL, scheme+"://"+said.Addresses["http"]))
	require.NoError(t, err)
	return u
}

// TestOneAddressHasItsShare: of all servers, in TLS or not, an address that has its share of
// connections gets status 503 for others, and no EOF; other addresses are served. A proxy that is
// not told a share has one all the same: half of its connections.
func TestOneAddressHasItsShare(t *testing.T) {
	a, dir := shared.NewAuthority(t), t.TempDir()
	cert, key := certificate(t, dir, a.Issue(time.Hour, "127.0.0.1"))
	roots := &tls.Config{RootCAs: a.Pool()}
	start := func(args ...string) *url.URL {
		if !slices.Contains(args, "--max-conns") {
			args = append(args, "--max-per-peer", "3")
		}
		return listening(t, args...)
	}
	const any = "127.0.0.1:0"
	inTLS := []string{"--cert", cert, "--key", key}
	behind := httptest.NewServer(http.NotFoundHandler()) // with one address for all clients of a proxy
	defer behind.Close()
	far := start("proxy", "--listen", any, "--no-offer", "--upstream", behind.URL)
	untold := []string{"proxy", "--listen", any, "--upstream", behind.URL, "--max-conns", "6"}
	for name, to := range map[string]*url.URL{
		"serve":              start("serve", "--listen", any, "--udp", "none"),
		"serve, TLS":         start(append(inTLS, "serve", "--listen", any, "--udp", "none")...),
		"far":                far,
		"far, untold":        start(append(untold, "--no-offer")...),
		"near, untold":       start(untold...),
		"near":               start("proxy", "--listen", any, "--upstream", behind.URL),
		"near, TLS":          start(append(inTLS, "proxy", "--listen", any, "--upstream", behind.URL)...),
		"context serve":      start("context", "serve", "--listen", any, "--store", "mem:"),
		"context serve, TLS": start(append(inTLS, "context", "serve", "--listen", any, "--store", "mem:")...),
	} {
		t.Run(name, func(t *testing.T) {
			path := "/echo"
			if strings.HasPrefix(name, "context") {
				path = "/"
			}
			for range 3 { // which are idle then
				served := dialFrom(t, "127.0.0.2", to, roots).call(path)
				assert.NotEqual(t, http.StatusServiceUnavailable, served.StatusCode)
			}
			for range 4 {
				refused := dialFrom(t, "127.0.0.2", to, roots).call(path)
				assert.Equal(t, http.StatusServiceUnavailable, refused.StatusCode)
				assert.NotEmpty(t, refused.Header.Get("Retry-After"))
			}
			for range 3 {
				other := dialFrom(t, "127.0.0.1", to, roots).call(path)
				assert.NotEqual(t, http.StatusServiceUnavailable, other.StatusCode)
			}
		})
	}
}
