package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/sock"
)

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
func (u *server) dialPlain(ctx context.Context) (net.Conn, error) {
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
func (u *server) secure(ctx context.Context, conn net.Conn) (net.Conn, error) {
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

// dialOffer opens the connection of an offer, with TLS or without. A recorder sees the cleartext,
// as with other connections.
func (u *server) dialOffer(secure bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
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

// offering returns the client that sends offers to the upstream.
func (u *server) offering() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, DialContext: u.dialOffer(false),
		DialTLSContext: u.dialOffer(true),
	}}
}

// within returns a connection inside this process, whose peer serves it.
func (p *core) within(serve func(in *sock.Source)) net.Conn {
	here, there := inproc.Pipe(0)
	p.wait.Go(func() {
		in := p.newSource(there)
		defer func() { _ = in.Conn.Close() }()
		defer context.AfterFunc(p.ctx, func() { sock.Reset(there) })()
		serve(in)
	})
	return here
}
