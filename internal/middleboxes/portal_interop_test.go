//go:build interop

package middleboxes_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// portal answers every request in place of servers, until somebody logs in.
type portal struct {
	addr  string
	login atomic.Bool
}

const page = "<html>please log in</html>"

// startPortal starts one, in TLS if that is given, and redirects a transport's connections to it.
func startPortal(t *testing.T, status int, secure *tls.Config, transport *http.Transport) *portal {
	t.Helper()
	p := new(portal)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.addr = l.Addr().String()
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Content-Type", "text/html")
			if status == http.StatusFound {
				w.Header().Set("Location", "http://login.invalid/")
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, page)
		})}
	done := make(chan struct{})
	go func() { _ = server.Serve(l); close(done) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !p.login.Load() {
			addr = p.addr
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	return p
}

// portalHTTP: the page goes to the caller, and nothing is remembered.
func portalHTTP(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusFound, http.StatusNetworkAuthenticationRequired} {
		for _, mode := range []negotiate.Mode{negotiate.Explicit, negotiate.FirstCall, negotiate.Auto} {
			o := startOrigin(t, "127.0.0.1", nil, nil)
			transport := through()
			p := startPortal(t, status, nil, transport)
			c := newClient(t, mode, transport)
			s := c.dial(t, "http://"+o.addr+"/soap")
			for range 3 {
				got, err := exchange(t, s, nil, c.text())
				require.NoError(t, err)
				assert.Equal(t, page, got)
			}
			p.login.Store(true)
			if mode == negotiate.Explicit {
				require.NoError(t, s.Close())
				s = c.dial(t, "http://"+o.addr+"/soap")
			}
			c.say(t, s)
			assert.True(t, s.Agreed().HHFR, "%d %s: %s", status, mode, s.Agreed().Why)
			o.once(t, 1)
			c.log.silent(t)
		}
	}
}

// portalHTTPS: a wrong certificate is an error of the call, and nothing is remembered.
func portalHTTPS(t *testing.T) {
	authority, another := shared.NewAuthority(t), shared.NewAuthority(t)
	o := startOrigin(t, "127.0.0.1", &tls.Config{Certificates: []tls.Certificate{authority.Issue(time.Hour,
		"127.0.0.1")}}, nil)
	transport := trusting(&tls.Config{RootCAs: authority.Pool()}, true)
	p := startPortal(t, http.StatusOK, &tls.Config{Certificates: []tls.Certificate{another.Issue(time.Hour,
		"portal.invalid")}}, transport)
	c := newClient(t, negotiate.Auto, transport)
	s := c.dial(t, "https://"+o.addr+"/soap")
	_, err := exchange(t, s, nil, c.text())
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unreachable})
	assert.NotZero(t, session.TroubleOf(err))
	p.login.Store(true)
	c.say(t, s)
	streams(t, s, "tls")
	o.once(t, 1)
	c.log.silent(t)
}

// portalMet: a session that was met before is opened again through a portal. The portal's answer is
// no reply to any call.
func portalMet(t *testing.T) {
	o := startOrigin(t, "127.0.0.1", nil, nil)
	transport := through()
	p := startPortal(t, http.StatusOK, nil, transport)
	p.login.Store(true)
	c := newClient(t, negotiate.Auto, transport)
	c.cfg.Transports = dialling(transport)
	s := c.dial(t, "http://"+o.addr+"/soap")
	c.say(t, s)
	streams(t, s, "upgrade")
	require.NoError(t, s.Close())
	p.login.Store(false)
	s = c.dial(t, "http://"+o.addr+"/soap")
	got, err := exchange(t, s, nil, c.text())
	require.NoError(t, err)
	assert.Equal(t, page, got)
	p.login.Store(true)
	c.say(t, s)
	o.once(t, 2)
	streams(t, s, "upgrade")
	c.log.silent(t)
}
