// Package tls is the transport over TLS 1.3 on TCP. Addresses are host:port. Both ends select
// hhfr/1 by ALPN, so that a listener can have HTTP at the same address
// ([github.com/hhfr/hhfr/internal/oneport]).
package tls

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// Protocol is the ALPN name of streams.
const Protocol = oneport.Protocol

// sessions is how many servers' tickets are kept: each makes the next handshake with that server
// one without certificates.
const sessions = 64

// Below is what TLS runs over.
type Below interface {
	Dial(ctx context.Context, addr string) (net.Conn, error)
	Listen(ctx context.Context, addr string) (net.Listener, error)
}

// Transport dials and listens. Its connections have CloseWrite.
type Transport struct {
	config *tls.Config
	below  Below
}

// New makes a transport. cfg is copied, nil means the system's roots; a certificate in it is shown
// to who asks for one, and listening needs one. Streams have TLS 1.3 and Protocol whatever it says;
// without a ClientSessionCache it gets one, so that a stream that is opened anew resumes its
// session. below is what TLS runs over; nil means [tcp.Transport], whose probes end a connection
// whose peer is gone.
func New(cfg *tls.Config, below Below) *Transport {
	if cfg == nil {
		cfg = &tls.Config{}
	}
	if below == nil {
		below = tcp.Transport{}
	}
	cfg = cfg.Clone()
	cfg.MinVersion = tls.VersionTLS13
	if cfg.ClientSessionCache == nil {
		cfg.ClientSessionCache = tls.NewLRUClientSessionCache(sessions)
	}
	return &Transport{config: cfg, below: below}
}

// Dial connects to addr and opens TLS with the host that it names, unless the configuration names
// another.
func (t *Transport) Dial(ctx context.Context, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	conn, err := t.below.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	cfg := t.config.Clone()
	cfg.NextProtos = []string{Protocol}
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if secure.ConnectionState().NegotiatedProtocol != Protocol {
		_ = secure.Close()
		return nil, fmt.Errorf("the server speaks TLS there, but takes no streams (ALPN %s)", Protocol)
	}
	return secure, nil
}

// Listen waits for connections at addr; port 0 takes a free one. Those that are no streams are
// closed.
func (t *Transport) Listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := t.below.Listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	port := oneport.New(l, oneport.Config{TLS: t.config})
	_ = port.HTTP().Close()
	return port.Streams(), nil
}
