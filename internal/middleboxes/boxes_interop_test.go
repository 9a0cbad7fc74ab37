//go:build interop

package middleboxes_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// dialer opens streams' connections like an HTTP transport.
type dialer struct{ by *http.Transport }

func dialling(t *http.Transport) map[string]streamer.Transport {
	return map[string]streamer.Transport{"tcp": dialer{t}}
}

func (d dialer) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return d.by.DialContext(ctx, "tcp", addr)
}

func (d dialer) Listen(ctx context.Context, addr string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", addr)
}

// refuser is a reverse proxy that itself answers requests with the field Upgrade: by a status, or
// 0: by closing the connection.
func refuser(t *testing.T, o *origin, status int) (front string, refused *atomic.Int32) {
	t.Helper()
	refused = new(atomic.Int32)
	to := &url.URL{Scheme: "http", Host: o.addr}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
	}, Transport: &http.Transport{DisableKeepAlives: true}}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "" {
				forward.ServeHTTP(w, r)
				return
			}
			refused.Add(1)
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(status)
		})}
	done := make(chan struct{})
	go func() { _ = server.Serve(l); close(done) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return "http://" + l.Addr().String() + "/soap", refused
}

// refusals: 426 says that nothing else is wrong, and the call is repeated. Any other answer is the
// call's; without an answer its fate is unknown. No upgrade is requested again.
func refusals(t *testing.T) {
	for _, status := range []int{0, http.StatusBadRequest, http.StatusUpgradeRequired, http.StatusNotImplemented} {
		o := startOrigin(t, "127.0.0.2", nil, nil)
		c := newClient(t, negotiate.Auto, through())
		url, refused := refuser(t, o, status)
		s := c.dial(t, url)
		m, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(c.text())))
		calls := 4
		switch status {
		case 0:
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
		case http.StatusUpgradeRequired:
			require.NoError(t, err)
			assert.Contains(t, string(m.Head), "HTTP/1.1 200")
			_, err = m.ReadAll(1 << 20)
			require.NoError(t, err)
			calls = 5
		default:
			require.NoError(t, err)
			assert.Contains(t, string(m.Head), http.StatusText(status))
		}
		plain(t, s, "a request that asks for a stream")
		for range 3 {
			c.say(t, s)
		}
		require.NoError(t, s.Close())
		s = c.dial(t, url)
		assert.True(t, s.Agreed().Remembered, s.Agreed().Why)
		c.say(t, s)
		o.once(t, calls)
		assert.EqualValues(t, 1, refused.Load(), "asked once")
	}
}

// safeCalls are repeated, after any answer.
func safeCalls(t *testing.T) {
	for _, status := range []int{0, http.StatusBadRequest, http.StatusUpgradeRequired, http.StatusNotImplemented} {
		o := startOrigin(t, "127.0.0.2", nil, nil)
		c := newClient(t, negotiate.Auto, through())
		url, refused := refuser(t, o, status)
		s := c.dial(t, url)
		_, err := exchange(t, s, []byte("GET /soap HTTP/1.1\r\n\r\n"), "")
		require.NoError(t, err)
		plain(t, s, "a request that asks for a stream")
		o.once(t, 1)
		assert.EqualValues(t, 1, refused.Load(), "asked once")
	}
}

// oneOpenPort is a firewall that passes only the port of HTTP, at which the server accepts
// everything.
func oneOpenPort(t *testing.T) {
	o := startOrigin(t, "127.0.0.1", nil, nil)
	for _, mode := range []negotiate.Mode{negotiate.Explicit, negotiate.FirstCall, negotiate.Auto} {
		c := newClient(t, mode, through())
		s := c.dial(t, "http://"+o.addr+"/soap")
		c.say(t, s)
		require.True(t, s.Agreed().HHFR, s.Agreed().Why)
		c.bothWays(t, s)
		c.log.silent(t)
	}
}
