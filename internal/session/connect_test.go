package session_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// forward is a forward proxy: it removes Upgrade, as it is hop by hop, and opens tunnels unless it
// is told not to.
type forward struct {
	tunnels bool

	mu    sync.Mutex
	asked []string
	wait  sync.WaitGroup
}

func (f *forward) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Method)
	f.mu.Unlock()
	if r.Method != http.MethodConnect {
		r.Header.Del("Upgrade")
		r.Header.Del("Connection")
		r.RequestURI = ""
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
		return
	}
	if !f.tunnels || r.Header.Get("Proxy-Authorization") != "Basic dTpw" {
		http.Error(w, "no tunnels", http.StatusForbidden)
		return
	}
	to, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n")
	f.mu.Lock() // before the test waits
	defer f.mu.Unlock()
	f.wait.Go(func() {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite()
	})
	f.wait.Go(func() {
		_, _ = io.Copy(from, to)
		_ = from.Close()
	})
}

func (f *forward) methods() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

// Behind a forward proxy streams go through tunnels, where it allows them; else it is plain SOAP.
func TestStreamsGoThroughProxies(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for _, tunnels := range []bool{true, false} {
			t.Run(fmt.Sprint("https ", secure, ", tunnels ", tunnels), func(t *testing.T) {
				d := open(t, http.HandlerFunc(repeat), secure, nil)
				f := &forward{tunnels: tunnels}
				server := httptest.NewServer(f)
				u, err := url.Parse(server.URL)
				require.NoError(t, err)
				u.User = url.UserPassword("u", "p")
				d.client.Proxy = http.ProxyURL(u)
				cfg := session.Config{
					Mode:       negotiate.Auto,
					HTTPClient: &http.Client{Transport: d.client},
					Store:      memory.New(memory.Config{}),
				}
				if secure && !tunnels { // nothing goes at all
					s := dial(t, d.url, cfg)
					_, err := s.Call(t.Context(), message("x"))
					require.Error(t, err)
					require.NoError(t, s.Close())
				} else {
					for range 2 { // the second session is met again
						s := dial(t, d.url, cfg)
						say(t, s, "first")
						want := tunnels
						require.Eventually(t, func() bool {
							return s.Agreed().HHFR == want &&
								(want || s.Agreed().NoStream != "" || s.Agreed().Remembered)
						}, eventually, tick)
						say(t, s, "second")
						require.NoError(t, s.Close())
						if !tunnels {
							assert.Contains(t, s.Agreed().Why, "403 Forbidden")
						}
					}
					assert.Contains(t, f.methods(), http.MethodConnect)
				}
				d.client.CloseIdleConnections()
				http.DefaultTransport.(*http.Transport).CloseIdleConnections()
				server.Close()
				f.mu.Lock()
				f.mu.Unlock() //nolint:staticcheck // tunnels that began are counted
				f.wait.Wait()
			})
		}
	}
}
