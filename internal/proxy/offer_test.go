package proxy_test

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// thinker is a server that delays its answer to each offer until release, and echoes all else at
// once.
func thinker(offers chan<- struct{}, release <-chan struct{}) func(net.Conn) {
	return server(func(h *http1.Head, entity []byte) []byte {
		if isOffer(h) {
			offers <- struct{}{}
			<-release
			return []byte("HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}
		return echoReply(h, entity)
	})
}

// TestOffersHoldUpNoCall: while a server delays its answer to an offer, the first and any later
// one, calls go through; with one proxy, and with a pair.
func TestOffersHoldUpNoCall(t *testing.T) {
	offers, release := make(chan struct{}), make(chan struct{})
	o := startOrigin(t, "127.0.0.1:0", thinker(offers, release))
	far := startOffering(t, "127.0.0.1:0", o.url(), func(c *settings) { c.RememberFor = time.Millisecond })
	near := startProxy(t, "127.0.0.1:0", far.url(), nil)
	for range 2 {
		<-offers
		for _, to := range []end{far, near} {
			var clients []*client
			for range 4 { // all at once
				c := connect(t, to.url())
				c.say(post("", envelope))
				clients = append(clients, c)
			}
			for _, c := range clients {
				c.hear(envelope)
			}
		}
		release <- struct{}{}
		require.Eventually(t, func() bool { // a call after the remembered time triggers the next offer
			c := connect(t, far.url())
			c.say(post("", envelope))
			c.hear(envelope)
			return len(o.received()) > 0 && o.offers() > 1
		}, patience, 10*time.Millisecond)
	}
	close(release)
	go func() {
		for range offers { // offers that are made until the end
		}
	}()
	require.NoError(t, near.Close())
	require.NoError(t, far.Close())
	o.close()
	close(offers)
}

// TestNoOffers: without transports no offer is ever made, and near proxies still have a partner.
func TestNoOffers(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	never := func(c *settings) { c.Transports = map[string]streamer.Transport{} }
	far := startProxy(t, "127.0.0.1:0", o.url(), never)
	require.Error(t, far.Linked(t.Context()))
	near := startProxy(t, "127.0.0.1:0", far.url(), nil)
	require.NoError(t, near.Linked(t.Context()))
	for _, to := range []end{far, near} {
		c := connect(t, to.url())
		c.say(post("", envelope))
		c.hear(envelope)
	}
	assert.Zero(t, o.offers())
}

// moved is a listener that names another port than its own, like a port forwarding to nowhere.
type moved struct {
	net.Listener
	addr net.Addr
}

func (m moved) Addr() net.Addr { return m.addr }

// warnings collects the lines of a log at level warning and above.
type warnings struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (w *warnings) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(b)
}

func (w *warnings) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Split(strings.TrimSuffix(w.all.String(), "\n"), "\n")
}

// TestFallBackIsToldOnce: a blocked port of streams is logged once, with the reason and the remedy,
// for any number of calls and offers; so is the stream that is finally opened, and its loss. The
// far end, whose server knows nothing of hhfr, has nothing to warn of.
func TestFallBackIsToldOnce(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	addr := shared.Addr(t)
	blocked, err := net.ResolveTCPAddr("tcp", shared.Addr(t))
	require.NoError(t, err)
	var said, saidFar warnings
	to := func(w *warnings) *slog.Logger {
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	startFar := func(change func(*settings)) end {
		return startProxy(t, addr, o.url(), func(c *settings) {
			c.Log = to(&saidFar)
			if change != nil {
				change(c)
			}
		})
	}
	elsewhere, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	far := startFar(func(c *settings) { c.Streams = moved{elsewhere, blocked} })
	var offers atomic.Int32
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.Mode, c.RememberFor, c.Log = negotiate.Explicit, time.Millisecond, to(&said)
		c.WrapDialed = func(conn net.Conn) net.Conn {
			offers.Add(1)
			return conn
		}
	})
	calls := func() {
		for range 3 {
			c := connect(t, near.url())
			c.say(post("", envelope))
			c.hear(envelope)
			require.NoError(t, c.Close())
		}
	}
	calls()
	require.Eventually(t, func() bool {
		calls()
		return offers.Load() > 30
	}, patience, 50*time.Millisecond)
	require.Len(t, said.lines(), 1, "%q", said.lines())
	assert.Contains(t, said.lines()[0], "no stream to "+blocked.String()+" (connection refused)")
	assert.Contains(t, said.lines()[0], "open that port")

	require.NoError(t, far.Close())
	far = startFar(nil)
	require.Eventually(t, func() bool {
		calls()
		return near.Linked(t.Context()) == nil
	}, patience, 50*time.Millisecond)
	calls()
	require.Len(t, said.lines(), 2, "%q", said.lines())
	assert.Contains(t, said.lines()[1], "a stream again")

	require.NoError(t, far.Close())
	plain := startOrigin(t, addr, server(echoReply))
	require.Eventually(t, func() bool {
		calls()
		return len(said.lines()) > 2
	}, patience, 50*time.Millisecond)
	calls()
	require.Len(t, said.lines(), 3, "%q", said.lines())
	assert.Contains(t, said.lines()[2], "no stream to the partner any more")
	plain.close()
	startFar(nil)
	require.Eventually(t, func() bool {
		calls()
		return near.Linked(t.Context()) == nil
	}, patience, 50*time.Millisecond)
	require.Len(t, said.lines(), 4, "%q", said.lines())
	assert.Equal(t, []string{""}, saidFar.lines())
}
