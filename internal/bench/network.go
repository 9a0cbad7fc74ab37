package bench

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	streamertls "github.com/hhfr/hhfr/pkg/streamer/tls"
)

// network is the real one. It counts what its connections carry, below TLS and with all heads.
type network struct {
	secure         bool // streams are in TLS
	sent, received atomic.Int64
}

func (n *network) connect(ctx context.Context, addr string) (net.Conn, error) {
	return n.Dial(ctx, addr)
}

func (n *network) streams(secure *tls.Config) streamer.Transport {
	if n.secure {
		return streamertls.New(secure, n)
	}
	return n
}

func (n *network) stats() directions {
	return directions{link.Direction{Wire: n.sent.Load()}, link.Direction{Wire: n.received.Load()}}
}

// Close implements [io.Closer]. Each connection is closed by who dialed it.
func (n *network) Close() error { return nil }

// Dial implements [streamer.Transport].
func (n *network) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := tcp.Transport{}.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &measuredConn{c, n}, nil
}

// Listen implements [streamer.Transport].
func (n *network) Listen(ctx context.Context, addr string) (net.Listener, error) {
	return tcp.Transport{}.Listen(ctx, addr)
}

// measuredConn counts what a connection carries.
type measuredConn struct {
	net.Conn
	on *network
}

// NetConn is the connection below, whose methods end it gently.
func (c *measuredConn) NetConn() net.Conn { return c.Conn }

// Read implements [io.Reader].
func (c *measuredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.on.received.Add(int64(n))
	return n, err
}

// Write implements [io.Writer]. The reply may be here before the write returns, so it counts first.
func (c *measuredConn) Write(b []byte) (int, error) {
	c.on.sent.Add(int64(len(b)))
	n, err := c.Conn.Write(b)
	c.on.sent.Add(int64(n - len(b)))
	return n, err
}

// ErrPeer says that a URL is not that of an hhfr serve with the services to measure.
var ErrPeer = errors.New("no hhfr serve with the services to measure")

// peerOf is the server at a URL, which may name one of its services.
func peerOf(u *url.URL, configured *tls.Config) *sessionServer {
	base := *u
	base.User, base.RawQuery, base.Fragment, base.RawPath = nil, "", "", ""
	for name := range experiments {
		base.Path = strings.TrimSuffix(base.Path, "/"+name)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	port := "80"
	if u.Scheme == "https" {
		port = "443"
		if configured == nil {
			configured = &tls.Config{}
		}
	}
	return &sessionServer{url: base.String(), addr: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)),
		configured: configured, close: func() error { return nil }}
}
