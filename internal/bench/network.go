package bench

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	streamertls "github.com/hhfr/hhfr/pkg/streamer/tls"
)

// lines are what the connections of a session go over.
type lines interface {
	connect(ctx context.Context, addr string) (net.Conn, error)
	// streams is the transport of the session's streams; secure is the configuration of streams in
	// TLS.
	streams(secure *tls.Config) streamer.Transport
	stats() directions
	io.Closer
}

// lines opens what the session goes over: the link, or the network to a peer.
func (c *nearEnd) lines(ends *sockets) (lines, error) {
	if c.trial.peer != nil {
		return &network{secure: c.trial.manner.tls}, nil
	}
	return c.trial.open(c.clock, ends)
}

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

// patience is how long a peer may take for a reply.
const patience = time.Minute

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

// LeftOut is what the peer does not have.
type LeftOut struct {
	What string `json:"what"` // how messages would travel, or a cost
	Why  string `json:"why"`
}

// warmUp has a session of each kind, which does not count, before anything is measured. The first
// shows whether the peer is what was expected. HTTP/2 may be missing there: that is left out.
func (r *Results) warmUp(ctx context.Context, cfg *SessionConfig, there known) error {
	probe := FirstCall
	if cfg.secure() {
		probe = FirstCallTLS
	}
	for _, service := range cfg.Services {
		size := orElse(cfg.Sizes, cfg.tables(service).sizes)[0]
		for _, way := range append([]SessionWay{probe}, cfg.Ways...) {
			s, err := cfg.trial(service, way, size, 1, there)
			if err != nil {
				return err
			}
			if _, err = s.lived(ctx); ctx.Err() != nil {
				return context.Cause(ctx)
			}
			switch {
			case err != nil && s.manner.http2:
				r.LeftOut = append(r.LeftOut, LeftOut{string(way), err.Error()})
				cfg.Ways = slices.DeleteFunc(slices.Clone(cfg.Ways), func(w SessionWay) bool { return w == way })
			case err != nil:
				return fmt.Errorf("%s: %w: %s, %s: %w", cfg.Peer.Redacted(), ErrPeer, service, way, err)
			}
		}
	}
	return nil
}
