package hhfr_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// One port serves plain SOAP, streams of their own over TCP, and over UDP.
func TestOneAddress(t *testing.T) {
	addr := start(t, &hhfr.Server{Handler: echo, Store: newStore(t)})
	for name, transports := range map[string]map[string]streamer.Transport{
		"tcp": nil, "udp": {"udp": udp.Transport{}},
	} {
		s, err := session.Dial(t.Context(), "http://"+addr, session.Config{
			Store: newStore(t), Transports: transports, RequireHHFR: true,
		})
		require.NoError(t, err, name)
		facts := s.Agreed().Facts
		assert.Equal(t, negotiate.TransportURI(name), facts.Transport)
		_, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		assert.Equal(t, ":"+port, facts.Address)
		reply, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte("<a/>")))
		require.NoError(t, err)
		body, err := reply.ReadAll(1 << 20)
		require.NoError(t, err)
		assert.Equal(t, "<a/>", string(body))
		require.NoError(t, s.Close())
	}
}

func TestServersThatCannotServe(t *testing.T) {
	server := &hhfr.Server{Handler: echo}
	server.Addr = start(t, server)
	require.NoError(t, call(t, dial(t, "http://"+server.Addr, nil))) // it serves
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.ErrorIs(t, server.Serve(l), &hhfr.Error{Code: hhfr.Invalid})
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	other := &hhfr.Server{Addr: server.Addr, Handler: echo}
	require.ErrorIs(t, other.ListenAndServe(), &hhfr.Error{Code: hhfr.Unreachable})
	require.NoError(t, other.Close())
	other.Addr = "127.0.0.1:0"
	err = (&hhfr.Server{Addr: other.Addr, TLS: &tls.Config{MinVersion: tls.VersionTLS13}}).ListenAndServe()
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
	require.EqualError(t, err, "hhfr: invalid: TLS has no certificate: set Certificates or GetCertificate")
	require.NoError(t, other.ListenAndServe(), "it was closed before")
}

// Unchanged handlers inside a server of net/http are upgraded, and Close ends that.
func TestHandlerUpgrades(t *testing.T) {
	copying := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if responder.FactsOf(r.Context()) != nil {
			w.Header().Set("X-Way", stream.seen())
		}
		_, _ = io.Copy(w, r.Body) // the end of a short body is known with its last byte
	})
	for name, services := range map[string]http.Handler{"reads first": echo, "writes as it reads": copying} {
		handler := &hhfr.Handler{Handler: services, Store: newStore(t)}
		c := dial(t, serve(t, plain, handler), nil)
		require.NoError(t, call(t, c))
		r, err := c.Call(t.Context(), &hhfr.Request{Body: hhfr.Body("<a/>")})
		require.NoError(t, err)
		assert.Equal(t, stream.seen(), r.Header.Get("X-Way"), name)
		assert.Equal(t, "<a/>", readAll(t, r))
		require.NoError(t, c.Close())
		require.NoError(t, handler.Close())
		require.NoError(t, handler.Close())
	}
	require.NoError(t, (&hhfr.Handler{}).Close())
}

// A server whose listener fails, or is closed by another, ends as a whole and says so; several
// calls of Close at once wait for the same end.
func TestServersWhoseListenerEnds(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &hhfr.Server{Handler: echo, Store: newStore(t)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	c := dial(t, "http://"+l.Addr().String(), &hhfr.Config{Reconnect: -1})
	require.NoError(t, call(t, c))
	require.NoError(t, l.Close())
	err = <-served
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Unreachable})
	require.ErrorIs(t, err, net.ErrClosed)
	require.Error(t, call(t, c), "its streams ended")
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() { assert.NoError(t, server.Close()) })
	}
	wait.Wait()
}
