package main

import (
	"bufio"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// tlsPorts are servers of TLS, by how they end a connection on which a client speaks plain HTTP:
// their response, or nothing.
func tlsPorts(t *testing.T) map[string]string {
	config := &tls.Config{Certificates: testCertificate(t)}
	ports := map[string]string{}
	for name, says := range map[string]string{
		"alert": "\x15\x03\x01\x00\x02\x02\x46",
		"go":    "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
		"nginx": "HTTP/1.1 400 Bad Request\r\nContent-Length: 49\r\n\r\n" +
			"The plain HTTP request was sent to HTTPS port<br>",
		"silence": "",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		var serving sync.WaitGroup
		t.Cleanup(func() {
			_ = l.Close()
			serving.Wait()
		})
		serving.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				serving.Go(func() {
					defer conn.Close()
					in := bufio.NewReader(conn)
					if first, err := in.Peek(1); err != nil || first[0] == 0x16 {
						got, _ := io.ReadAll(tls.Server(peekedConn{conn, in}, config))
						assert.Empty(t, got, "a handshake is enough")
						return
					}
					if r, err := http.ReadRequest(in); err == nil {
						_, _ = io.Copy(io.Discard, r.Body)
						_, _ = io.WriteString(conn, says)
					}
				})
			}
		})
		ports[name] = "http://" + l.Addr().String() + "/service"
	}
	return ports
}

// peekedConn is a connection whose first bytes were inspected.
type peekedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c peekedConn) Read(p []byte) (int, error) { return c.in.Read(p) }

func testCertificate(t *testing.T) []tls.Certificate {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.TLS.Certificates
}

// TestWrongScheme: a client that speaks HTTP to a TLS port, or TLS to a plain one, learns which
// scheme to write, and that nothing was sent.
func TestWrongScheme(t *testing.T) {
	message, recording := shared.Testdata(t, "soap", "cwmp-inform.xml"), shared.Testdata(t, "pcap", "session.pcapng")
	store := filepath.Join(t.TempDir(), "store") // replay writes to it
	require.NoError(t, os.CopyFS(store, os.DirFS(shared.Testdata(t, "pcap", "store"))))
	recorded := []string{"replay", recording, "--store", store}
	for name, url := range tlsPorts(t) {
		commands := map[string][]string{
			"stream": {"stream", url, message, "-o", "json"}, "ordered": {"stream", url, message, "--ordered"},
			"negotiate": {"negotiate", url}, "replay": append(recorded, "--to", url),
			"negotiate, trusting": {"negotiate", url, "--insecure-skip-verify"},
			"replay as SOAP":      append(recorded, "--to", url, "--as", "soap"),
		}
		if name == "silence" {
			delete(commands, "replay as SOAP") // makes no offer, and could not be certain about a message
			commands["stream"] = append(commands["stream"], "--mode", "explicit")
			commands["stream, asking first"] = []string{"stream", url, message, "--require-hhfr"}
		}
		for what, args := range commands {
			t.Run(name+", "+what, func(t *testing.T) {
				code, out, stderr := do(t, args...)
				assert.Equal(t, exit.NoPeer, code, stderr)
				assert.Contains(t, stderr, "the server speaks TLS there: the URL must be https")
				assert.Contains(t, stderr, "hint: write https:// in the URL")
				assert.NotContains(t, strings.Replace(out, `"unknown_fate":[]`, "", 1)+stderr, "fate")
				assert.NotContains(t, stderr, "plain SOAP")
			})
		}
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	url := strings.Replace(plain.URL, "http:", "https:", 1)
	for what, args := range map[string][]string{
		"stream": {"stream", url, message}, "replay": append(recorded, "--to", url),
	} {
		t.Run("no TLS, "+what, func(t *testing.T) {
			code, out, stderr := do(t, args...)
			assert.Equal(t, exit.NoPeer, code, stderr)
			assert.Contains(t, stderr, "the server speaks no TLS there: the URL must be http")
			assert.Contains(t, stderr, "hint: write http:// in the URL")
			assert.NotContains(t, out+stderr, "fate")
		})
	}
}

// TestTunnelOfTLS: proxies that do not speak TLS still let clients speak TLS to a server.
func TestTunnelOfTLS(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }
	origin := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	origin.Config.ErrorLog = log.New(io.Discard, "", 0)
	origin.StartTLS()
	t.Cleanup(origin.Close)
	far := startProxyProcess(t, "127.0.0.1:0", strings.Replace(origin.URL, "https:", "http:", 1)+"/service", "-v")
	far.told("level=WARN msg=upstream ")
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/service"), "-v")
	near.linked(1)
	for _, p := range []*proxyProcess{far, near} {
		secure := strings.Replace(p.url("/service"), "http:", "https:", 1)
		resp, err := origin.Client().Post(secure, "text/xml", strings.NewReader(envelope(1)))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, envelope(1), string(body))
		resp, err = http.Post(p.url("/service"), "text/xml", strings.NewReader(envelope(1)))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusBadGateway, resp.StatusCode)
	}
	origin.Client().CloseIdleConnections()
	near.end()
	far.end()
}

// TestProxyToWrongScheme: a proxy tells its operator, and tells its clients that nothing was sent.
func TestProxyToWrongScheme(t *testing.T) {
	ports := tlsPorts(t)
	delete(ports, "silence") // unchanged: the client sees what the server does
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	ports["no TLS"] = strings.Replace(plain.URL, "http:", "https:", 1) + "/service"
	for name, url := range ports {
		t.Run(name, func(t *testing.T) {
			p := startProxyProcess(t, "127.0.0.1:0", url, "-v")
			if name != "no TLS" { // detected by offers: there are none over https
				p.told("level=WARN msg=upstream ")
			}
			resp, err := http.Post(p.url("/service"), "text/xml", strings.NewReader(envelope(1)))
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, http.StatusBadGateway, resp.StatusCode)
			use := "the server speaks TLS there: the URL must be https"
			if name == "no TLS" {
				use = "the server speaks no TLS there: the URL must be http"
			}
			assert.Contains(t, string(body), use+"; the request was not sent")
			p.end()
			assert.Regexp(t, "level=WARN msg=upstream .*"+use, p.errs.String())
		})
	}
}
