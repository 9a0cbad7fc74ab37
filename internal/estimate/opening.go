package estimate

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// openingCost is what it takes to open the stream of a pair.
type openingCost struct{ wire, packets [2]int64 } // up, down

func (o openingCost) traffic() traffic {
	return traffic{o.wire[0] + o.wire[1], o.packets[0] + o.packets[1]}
}

// openings opens a session in this process, as the near end of a pair does with the far one: of
// ends that meet for the first time, and of the same ends again.
func openings(ctx context.Context, host string) (first, met openingCost, err error) {
	store, there := memory.New(memory.Config{}), memory.New(memory.Config{})
	defer func() { err = errors.Join(err, store.Close(), there.Close()) }()
	far, err := newFar(ctx, there)
	if err != nil {
		return first, met, err
	}
	defer func() { err = errors.Join(err, far.server.Close()) }()
	if first, err = far.open(ctx, negotiate.FirstCall, host, store); err != nil {
		return first, met, err
	}
	met, err = far.open(ctx, negotiate.Met, host, store)
	return first, met, err
}

// farEnd is the end that sessions are opened with.
type farEnd struct {
	network *inproc.Transport
	server  *peer.Server
}

const farAddr = "far:80"

func newFar(ctx context.Context, store ctxstore.Store) (*farEnd, error) {
	f := &farEnd{network: new(inproc.Transport)}
	services, err := peer.NewServices(peer.Echo())
	if err != nil {
		return nil, err
	}
	l, err := f.network.Listen(ctx, farAddr)
	if err != nil {
		return nil, err
	}
	f.server, err = peer.Start(peer.Config{HTTP: l, Services: services, Store: store, Coders: codersOf(store),
		Stream: proxy.StreamConfig(streamer.Config{})})
	return f, err
}

func codersOf(store ctxstore.Store) coders.Func {
	return coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))
}

func (f *farEnd) open(
	ctx context.Context,
	mode negotiate.Mode,
	host string,
	store ctxstore.Store,
) (openingCost, error) {
	c := &linkTraffic{network: f.network}
	s, err := session.Dial(ctx, "http://"+host+peer.EchoPath, session.Config{
		Mode: mode, RequireHHFR: true, Store: store, Coders: codersOf(store),
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true,
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return c.Dial(ctx, addr) }}},
		Transports: map[string]streamer.Transport{"tcp": c}, Stream: proxy.StreamConfig(streamer.Config{}),
	})
	if err != nil {
		return openingCost{}, err
	}
	select {
	case <-s.Stream().Met():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	o := c.result()
	return o, errors.Join(err, s.Close())
}

// linkTraffic counts what goes over connections.
type linkTraffic struct {
	network *inproc.Transport

	mu sync.Mutex
	openingCost
}

// Dial connects to the far end, whatever its name.
func (c *linkTraffic) Dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := c.network.Dial(ctx, farAddr)
	if err != nil {
		return nil, err
	}
	for dir := range c.wire { // the packets that open it
		c.add(dir, 0)
	}
	return &meteredConn{conn, c}, nil
}

// Listen is not used.
func (c *linkTraffic) Listen(context.Context, string) (net.Listener, error) {
	return nil, errors.ErrUnsupported
}

func (c *linkTraffic) add(dir, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := leg{writes: once(int64(n))}
	t := l.traffic()
	c.wire[dir] += t.Bytes
	c.packets[dir] += t.Packets
}

func (c *linkTraffic) result() openingCost {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.openingCost
}

type meteredConn struct {
	net.Conn
	c *linkTraffic
}

// Write counts first: who reads the bytes may be met, and ask for the result, before the write
// returns.
func (c *meteredConn) Write(p []byte) (int, error) {
	c.c.add(0, len(p))
	return c.Conn.Write(p)
}

func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.c.add(1, n)
	}
	return n, err
}

// NetConn is the connection below.
func (c *meteredConn) NetConn() net.Conn { return c.Conn }
