package session_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// portal makes a page answer the connections of a transport, until somebody logs in.
type portal struct {
	net.Listener
	gone atomic.Bool
}

func startPortal(t *testing.T, transport *http.Transport, page http.HandlerFunc) *portal {
	t.Helper()
	p := new(portal)
	var err error
	p.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			page(w, r)
		}),
	}
	done := make(chan struct{})
	go func() {
		_ = server.Serve(p.Listener)
		close(done)
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !p.gone.Load() {
			addr = p.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	return p
}

var pages = map[string]http.HandlerFunc{
	"page": func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>please log in</html>")
	},
	"redirection": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://login.example/")
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, "<html>please log in</html>")
	},
	"511": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNetworkAuthenticationRequired)
		_, _ = io.WriteString(w, "<html>please log in</html>")
	},
}

// The answer of a portal goes to the caller, and is not remembered: the next call, or session, has
// a stream.
func TestPortalIsNotRemembered(t *testing.T) {
	for name, page := range pages {
		for _, mode := range []negotiate.Mode{negotiate.Explicit, negotiate.FirstCall, negotiate.Auto} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				d := open(t, http.HandlerFunc(repeat), false, nil)
				cfg := d.config(mode)
				cfg.HTTPClient.CheckRedirect = func(*http.Request, []*http.Request) error {
					return http.ErrUseLastResponse
				}
				p := startPortal(t, d.client, page)
				s := dial(t, d.url, cfg)
				_, body := call(t, s, "", "<e>through the portal</e>")
				assert.Equal(t, "<html>please log in</html>", body)
				assert.False(t, s.Agreed().HHFR)
				assert.NotEmpty(t, s.Agreed().Why)
				assert.NotContains(t, stored(t, cfg.Store), session.PlainPrefix)
				p.gone.Store(true)
				if mode == negotiate.Explicit { // which asks once a session
					require.NoError(t, s.Close())
					s = dial(t, d.url, cfg)
				}
				say(t, s, "a call")
				assert.True(t, s.Agreed().HHFR, s.Agreed().Why)
			})
		}
	}
}

// A RoundTripper asks again soon after a portal.
func TestRoundTripperBehindAPortal(t *testing.T) {
	for _, mode := range []negotiate.Mode{negotiate.Explicit, negotiate.Auto} {
		d := open(t, http.HandlerFunc(repeat), false, nil)
		p := startPortal(t, d.client, pages["page"])
		clock := newLater()
		rt, err := session.NewRoundTripper(d.client, session.Config{Mode: mode, Clock: clock})
		require.NoError(t, err)
		post := func() string {
			resp, err := (&http.Client{Transport: rt}).Post(d.url, "text/xml", strings.NewReader("<e/>"))
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			return string(body)
		}
		assert.Contains(t, post(), "log in")
		s, ok := rt.Session(d.url)
		require.True(t, ok)
		assert.False(t, s.Agreed().HHFR)
		assert.Contains(t, post(), "log in")
		p.gone.Store(true)
		clock.forward(6 * time.Second)
		assert.Equal(t, "<e/>", post())
		s, ok = rt.Session(d.url)
		require.True(t, ok)
		assert.True(t, s.Agreed().HHFR, "%s: %s", mode, s.Agreed().Why)
		require.NoError(t, rt.Close())
	}
}

// An answer of an HTTP server in SOAP, or a refusal, is its own: it is remembered.
func TestAnswersThatAreNoPortals(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"SOAP":        repeat,
		"accepted":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"bad request": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) },
		"not found":   http.NotFound,
		"not implemented": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusNotImplemented)
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := new(atomic.Int32)
			server, client := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(negotiate.Field) != "" {
					asked.Add(1)
				}
				answer(w, r)
			}), false, false)
			defer server.Close()
			cfg := config(t)
			cfg.Mode, cfg.HTTPClient = negotiate.FirstCall, &http.Client{Transport: client}
			defer client.CloseIdleConnections()
			for range 3 {
				s := dial(t, server.URL, cfg)
				for range 2 {
					call(t, s, "", "<e/>")
				}
				require.NoError(t, s.Close())
			}
			assert.EqualValues(t, 1, asked.Load())
		})
	}
}
