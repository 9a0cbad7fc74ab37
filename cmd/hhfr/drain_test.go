package main

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProxyWithContextsEnds: a signal ends a proxy with a context service long before its --drain,
// whatever connections it has: idle ones to the service and to the server, some to the service with
// one request after the other, and a client that waits for changes. Every request is answered whole
// or not at all.
func TestProxyWithContextsEnds(t *testing.T) {
	origin := httptest.NewTLSServer(&numbered{seen: map[string]int{}})
	t.Cleanup(origin.Close)
	cert, key := certificate(t, t.TempDir(), origin.TLS.Certificates[0])
	trust := origin.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trust.ServerName = "example.com"
	for scheme, signal := range map[string]os.Signal{"http": os.Interrupt, "https": syscall.SIGTERM} {
		t.Run(scheme, func(t *testing.T) {
			args := []string{"--cacert", cert, "--no-offer", "--context", "loopback", "--drain", "1h"}
			if scheme == "https" {
				args = append(args, "--cert", cert, "--key", key)
			}
			p := startProxyProcess(t, "127.0.0.1:0", origin.URL+"/service", args...)
			dial := func() net.Conn {
				conn, err := net.Dial("tcp", p.listen)
				require.NoError(t, err)
				if scheme == "https" {
					conn = tls.Client(conn, trust)
				}
				t.Cleanup(func() { _ = conn.Close() })
				return conn
			}
			// asks reports whether a request was answered whole, and may be followed by another.
			asks := func(conn net.Conn, path string) bool {
				if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: example.com\r\n\r\n"); err != nil {
					return false
				}
				from := bufio.NewReader(conn)
				if _, err := from.Peek(1); err != nil {
					return false
				}
				reply, err := http.ReadResponse(from, nil)
				if !assert.NoError(t, err) {
					return false
				}
				_, err = io.Copy(io.Discard, reply.Body)
				assert.NoError(t, err)
				return !reply.Close
			}
			for range 3 {
				require.True(t, asks(dial(), "/context"))
				require.True(t, asks(dial(), "/service"))
				dial()
			}
			var calling sync.WaitGroup
			for range 2 {
				conn := dial()
				require.True(t, asks(conn, "/context"))
				calling.Go(func() {
					for asks(conn, "/context") {
					}
				})
			}
			store := []string{"context", "watch", "--store", scheme + "://" + p.listen + "/context"}
			if scheme == "https" {
				store = append(store, "--store-cacert", cert)
			}
			watch := exec.CommandContext(t.Context(), "hhfr", store...)
			var told said
			watch.Stderr = &told
			require.NoError(t, watch.Start())
			t.Cleanup(func() {
				_ = watch.Process.Kill()
				_ = watch.Wait()
			})
			require.Eventually(t, func() bool {
				return strings.Contains(told.String(), "watching")
			}, time.Minute, 10*time.Millisecond)
			require.NoError(t, p.cmd.Process.Signal(signal))
			calling.Wait()
			ended := make(chan error, 1)
			go func() { ended <- p.cmd.Wait() }()
			select {
			case err := <-ended:
				assert.NoError(t, err, "%s", &p.errs)
			case <-time.After(time.Minute):
				assert.Fail(t, "it did not end")
				assert.NoError(t, p.cmd.Process.Kill())
				<-ended
			}
		})
	}
}
