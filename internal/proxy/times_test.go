package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// hosts are the listeners of an in-memory network, whose time can be that of a test.
type hosts struct {
	mu     sync.Mutex
	places map[string]*host
}

// host is one of its listeners.
type host struct {
	addr  *net.TCPAddr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (n *hosts) listen() *host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := &host{addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1 + len(n.places)}, conns: make(chan net.Conn),
		done: make(chan struct{})}
	n.places[h.addr.String()] = h
	return h
}

func (n *hosts) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	h := n.places[addr]
	n.mu.Unlock()
	here, there := inproc.Pipe(0)
	select {
	case h.conns <- placed{there, h.addr}:
		return placed{here, h.addr}, nil
	case <-h.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *host) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *host) Addr() net.Addr { return h.addr }

func (h *host) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

func (h *host) url() *url.URL {
	return &url.URL{Scheme: "http", Host: h.addr.String(), Path: "/service"}
}

// placed is a connection with an address.
type placed struct {
	net.Conn
	addr net.Addr
}

func (c placed) LocalAddr() net.Addr  { return c.addr }
func (c placed) RemoteAddr() net.Addr { return c.addr }
func (c placed) CloseWrite() error    { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// Dial and Listen make a transport of the network.
func (n *hosts) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return n.dial(ctx, "", addr)
}
func (n *hosts) Listen(context.Context, string) (net.Listener, error) { return n.listen(), nil }

// TestFlushedRepliesArriveAtTheirOwnTimes: a handler writes, flushes and waits three times; the
// writes arrive at their own times, with any framing: at once if the link takes no time, otherwise
// within its latency. XML may wait for its rest up to DefaultGather, and up to BodyPause if its
// length is stated.
func TestFlushedRepliesArriveAtTheirOwnTimes(t *testing.T) {
	const rtt = 120 * time.Millisecond
	for _, over := range []time.Duration{0, rtt} {
		for _, media := range []string{"text/event-stream", "text/plain", "application/json", "text/xml"} {
			for _, framing := range []string{"chunks", "length", "close"} {
				t.Run(fmt.Sprint(over, media, framing), func(t *testing.T) {
					late := over/2 + over/10 // and what 1 Mbit/s needs for some hundred bytes
					switch {
					case media == "text/xml" && framing == "length":
						late += proxy.BodyPause
					case media == "text/xml":
						late += proxy.DefaultGather
					}
					synctest.Test(t, func(t *testing.T) { arriveInTime(t, over, late, media, framing) })
				})
			}
		}
	}
}

// proxy starts one in the network; transport is how it opens streams, nil: it does not.
func (n *hosts) proxy(
	t *testing.T, cfg proxy.Config, upstream *url.URL, transport streamer.Transport,
) (*proxy.Proxy, *host) {
	store, h := memory.New(memory.Config{}), n.listen()
	cfg.Listen, cfg.Streams, cfg.Store, cfg.Dial = h, n.listen(), store, n.dial
	cfg.Transports = map[string]streamer.Transport{}
	if transport != nil {
		cfg.Transports["tcp"] = transport
	}
	cfg.Routes = proxy.To(&proxy.Upstream{URL: upstream})
	cfg.Coders = coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))
	p, err := proxy.Start(cfg)
	require.NoError(t, err)
	return p, h
}

func arriveInTime(t *testing.T, rtt, late time.Duration, media, framing string) {
	const events, line = 3, "<event of=\"1\"/>\n"
	n := &hosts{places: map[string]*host{}}
	var server http.Server
	times := make(chan time.Time, events)
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", media)
		switch framing {
		case "length":
			w.Header().Set("Content-Length", fmt.Sprint(events*len(line)))
		case "close":
			w.Header().Set("Transfer-Encoding", "identity")
		}
		for range events {
			times <- time.Now()
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second)
		}
	})
	upstream := n.listen()
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(upstream) })
	var transport streamer.Transport = n
	if rtt > 0 {
		thin, err := link.Relay(nil, link.Profile{Bandwidth: 1_000_000, RTT: rtt})
		require.NoError(t, err)
		defer func() { _ = thin.Close() }()
		transport = thin.Over(n)
	}
	far, between := n.proxy(t, proxy.Config{}, upstream.url(), nil)
	near, entry := n.proxy(t, proxy.Config{}, between.url(), transport)
	require.NoError(t, near.Linked(t.Context()))
	conn, err := n.dial(t.Context(), "", entry.addr.String())
	require.NoError(t, err)
	_, _ = io.WriteString(conn, "GET /service HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	lines := bufio.NewScanner(resp.Body)
	for range events {
		require.True(t, lines.Scan())
		assert.LessOrEqual(t, time.Since(<-times), late)
	}
	assert.False(t, lines.Scan())
	require.NoError(t, lines.Err())
	_ = conn.Close()
	require.NoError(t, near.Close())
	require.NoError(t, far.Close())
	_ = server.Shutdown(t.Context())
	running.Wait()
}
