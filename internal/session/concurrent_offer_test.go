package session_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Calls wait for no offer: while a server delays its answer to one, they go as plain SOAP; once
// there is a stream, they go over it.
func TestOffersGoBesideCalls(t *testing.T) {
	offered, release := make(chan struct{}), make(chan struct{})
	service := &unchanged{}
	l, err := new(loopback).Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	h, err := responder.NewHandler(service, responder.Config{Addresses: map[string]string{"tcp": ":" + port}})
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() { _ = h.ServeStreams(context.Background(), l) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("SOAPAction"), "negotiation") {
			close(offered)
			<-release
		}
		h.ServeHTTP(w, r)
	}))
	defer func() {
		_ = h.Close()
		wait.Wait()
		server.Close()
	}()
	client, rt := swapped(t, nil)
	for range 5 {
		_, body := post(t, client, server.URL+"/echo", "text/xml", strings.NewReader(envelope("<a/>")))
		assert.Equal(t, envelope("<a/>"), body)
	}
	<-offered
	assert.Equal(t, 5, service.ways(false))
	close(release)
	sess, ok := rt.Session(server.URL)
	require.True(t, ok)
	require.True(t, sess.Agreed().HHFR, sess.Agreed().Why)
	post(t, client, server.URL+"/echo", "text/xml", strings.NewReader(envelope("<a/>")))
	assert.Equal(t, 1, service.ways(true))
}

// A blocked port of streams is logged once, however many calls and offers there are, and so is the
// stream that opens in the end. A server without hhfr causes no warning.
func TestFallBackIsToldOnce(t *testing.T) {
	port := deadPort(t)
	service := &unchanged{}
	h, err := responder.NewHandler(service, responder.Config{Addresses: map[string]string{"tcp": port}})
	require.NoError(t, err)
	server := httptest.NewServer(h)
	var log syncBuffer
	clock := newLater()
	store := memory.New(memory.Config{Clock: clock})
	defer store.Close()
	client, rt := swapped(t, func(c *session.Config) {
		c.Clock, c.Store = clock, store
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	call := func(to string) {
		for range 3 {
			post(t, client, to+"/echo", "text/xml", strings.NewReader(envelope("<a/>")))
			_, ok := rt.Session(to)
			require.True(t, ok)
		}
		clock.forward(time.Hour)
	}
	call(server.URL)
	call(server.URL)
	assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	assert.Contains(t, log.String(), "no stream to 127.0.0.1"+port+" (connection refused)")
	assert.Contains(t, log.String(), "open that port")

	l, err := new(loopback).Listen(t.Context(), "127.0.0.1"+port)
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() { _ = h.ServeStreams(context.Background(), l) })
	defer func() {
		_ = h.Close()
		wait.Wait()
		server.Close()
	}()
	call(server.URL)
	call(server.URL)
	assert.Equal(t, 2, strings.Count(log.String(), "\n"), log.String())
	assert.Contains(t, log.String(), "a stream again")
	assert.Positive(t, service.ways(true))

	plain := httptest.NewServer(service)
	defer plain.Close()
	call(plain.URL)
	assert.Equal(t, 2, strings.Count(log.String(), "\n"), log.String())

	// The stream ends for good: that is logged, too, and the later stream as well.
	before, ok := rt.Session(server.URL)
	require.True(t, ok)
	before.Stream().Abort(streamer.CloseInternal, "of the test")
	post(t, client, server.URL+"/echo", "text/xml", strings.NewReader(envelope("<a/>")))
	require.Eventually(t, func() bool { // beside the call
		_, err := store.Get(t.Context(), "urn:hhfr:negotiation:1:plain:"+server.URL)
		return err == nil
	}, time.Minute, time.Millisecond)
	call(server.URL)
	assert.Equal(t, 3, strings.Count(log.String(), "\n"), log.String())
	assert.Contains(t, log.String(), "plain SOAP from now on")
	call(server.URL)
	assert.Equal(t, 4, strings.Count(log.String(), "\n"), log.String())
}
