package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/sock"
)

// errItself is why no connection is opened to a listener of this proxy: each of its calls would be
// another client's, until there is room for none.
var errItself = errors.New("the upstream is this proxy itself")

// dial opens a connection to an upstream. Errors: errItself, those of Config.Dial.
func (p *core) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := p.cfg.Dial(ctx, network, addr)
	if err == nil && p.listening.have(conn) {
		_ = conn.Close()
		return nil, errItself
	}
	if err == nil {
		conn = netconn.Of(conn)
	}
	return conn, err
}

// dialPlain opens a connection to the upstream itself.
func (u *upstream) dialPlain(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, u.p.cfg.Timeout)
	defer cancel()
	port := u.cfg.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.cfg.URL.Scheme]
	}
	conn, err := u.p.dial(ctx, "tcp", net.JoinHostPort(u.cfg.URL.Hostname(), port))
	if err != nil {
		return nil, &Error{Code: Unreachable, Err: err}
	}
	if u.cfg.URL.Scheme == "http" {
		return conn, nil
	}
	secure, err := u.secure(ctx, conn)
	if err != nil {
		var record tls.RecordHeaderError
		if errors.As(err, &record) {
			err = &session.SchemeError{Scheme: "http"}
		}
		return nil, &Error{Code: Unreachable, Err: err}
	}
	return secure, nil
}

// secure opens TLS with the upstream on a connection, and closes that on an error.
func (u *upstream) secure(ctx context.Context, conn net.Conn) (net.Conn, error) {
	cfg := &tls.Config{}
	if current := u.cfg.currentTLS(); current != nil {
		cfg = current.Clone()
	}
	if cfg.ServerName == "" {
		cfg.ServerName = u.cfg.URL.Hostname()
	}
	cfg.NextProtos = []string{"http/1.1"}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// dial opens a connection to the upstream for a lane: over a lane of the next pair, if
// there is one. A tunnel may go to an upstream of another scheme: clients speak TLS to it
// themselves.
func (u *upstream) dial(ctx context.Context, tunnel bool) (net.Conn, error) {
	if u.forwarder != nil && !tunnel {
		return u.dialInSequence(), nil
	}
	l, err := u.links.Get()
	if wrong := schemeError(err); wrong != nil && !tunnel {
		return nil, wrong
	}
	if l == nil {
		return u.dialPlain(ctx)
	}
	return u.p.within(func(in *sock.Source) { u.carry(in, journey{to: u, whole: true}) }), nil
}

// schemeError is why no HTTP can be forwarded to an upstream of another scheme than its URL says;
// nil for other errors, for which plain forwarding is left.
func schemeError(err error) error {
	var wrong *session.SchemeError
	if errors.As(err, &wrong) {
		return &Error{Code: Unreachable, Err: wrong}
	}
	return nil
}

// dialOffer opens the connection of an offer, with TLS or without. A recorder sees the cleartext,
// as with other connections.
func (u *upstream) dialOffer(secure bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := u.p.dial(ctx, network, addr)
		if err == nil && secure {
			conn, err = u.secure(ctx, conn)
		}
		if err != nil {
			return nil, err
		}
		return u.p.recorded(conn), nil
	}
}

func (p *core) recorded(conn net.Conn) net.Conn {
	if p.cfg.WrapDialed == nil {
		return conn
	}
	return p.cfg.WrapDialed(conn)
}
