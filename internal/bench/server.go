package bench

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// Addresses of servers beyond the link.
const (
	host       = "127.0.0.1"
	plainAddr  = host + ":80"
	secureAddr = host + ":443"
)

// sessionServer is the server of a session.
type sessionServer struct {
	url   string // without path
	addr  string
	trust *x509.CertPool
	// configured is the TLS configuration for a peer; nil: there is no TLS, or trust is all.
	configured *tls.Config
	close      func() error
}

// tls is the configuration of clients.
func (s *sessionServer) tls() *tls.Config {
	if s.configured != nil {
		return s.configured.Clone()
	}
	return &tls.Config{RootCAs: s.trust, MinVersion: tls.VersionTLS13}
}

// server is the peer, or the server that serve starts.
func (s *trial) server(ctx context.Context, ticks clock.Clock, ends *sockets) (*sessionServer, error) {
	if s.peer != nil {
		return s.peer, nil
	}
	return s.serve(ctx, ticks, ends)
}

// serve starts the server that the session needs, whose timers run on the link's clock.
func (s *trial) serve(ctx context.Context, ticks clock.Clock, ends *sockets) (*sessionServer, error) {
	services, err := peer.NewServices(peer.Concat(), peer.Sum(), peer.ReadWhole(peer.Echo()))
	if err != nil {
		return nil, err
	}
	if s.manner.hhfr() || !s.manner.tls && !s.manner.http2 {
		return s.servePeer(ctx, ticks, ends, services)
	}
	return s.serveHTTP(ctx, ends, services)
}

// secure makes the server speak TLS, with a certificate of its own.
func (s *sessionServer) secure() (*tls.Config, error) {
	cert, err := selfSigned()
	if err != nil {
		return nil, err
	}
	s.trust = x509.NewCertPool()
	s.trust.AddCert(cert.Leaf)
	s.url, s.addr = "https://"+secureAddr, secureAddr
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}, nil
}

// servePeer starts hhfr's own server, which has one address for everything except datagrams.
func (s *trial) servePeer(
	ctx context.Context, ticks clock.Clock, ends *sockets, services *peer.Services,
) (srv *sessionServer, err error) {
	srv = &sessionServer{url: "http://" + plainAddr, addr: plainAddr}
	cfg := peer.Config{Services: services, Store: s.there.store, Coders: s.there.coders, Clock: ticks}
	if s.manner.tls {
		if cfg.TLS, err = srv.secure(); err != nil {
			return nil, err
		}
	}
	if cfg.HTTP, err = ends.listen(ctx, srv.addr); err != nil {
		return nil, err
	}
	if s.transport == "udp" {
		streams, err := udp.Transport{Config: udp.Config{Clock: ticks}}.Listen(ctx, host+":0")
		if err != nil {
			return nil, errors.Join(err, cfg.HTTP.Close())
		}
		cfg.Streams = map[string]net.Listener{"udp": streams}
	}
	p, err := peer.Start(cfg)
	if err != nil {
		return nil, err
	}
	srv.close = p.Close
	return srv, nil
}

// serveHTTP starts the server of net/http: with TLS 1.3, or HTTP/2 without.
func (s *trial) serveHTTP(ctx context.Context, ends *sockets, services http.Handler) (srv *sessionServer, err error) {
	srv = &sessionServer{url: "http://" + plainAddr, addr: plainAddr}
	h := &http.Server{Handler: services, Protocols: s.manner.protocols()}
	serve := h.Serve
	if s.manner.tls {
		if h.TLSConfig, err = srv.secure(); err != nil {
			return nil, err
		}
		serve = func(l net.Listener) error { return h.ServeTLS(l, "", "") }
	}
	l, err := ends.listen(ctx, srv.addr)
	if err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	go func() { served <- serve(l) }()
	srv.close = func() error {
		err := h.Close()
		if why := <-served; !errors.Is(why, http.ErrServerClosed) {
			err = errors.Join(err, why)
		}
		return err
	}
	return srv, nil
}

// protocols are the versions of HTTP that both sides speak.
func (m manner) protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!m.http2)
	p.SetHTTP2(m.http2 && m.tls)
	p.SetUnencryptedHTTP2(m.http2 && !m.tls)
	return p
}

// selfSigned is a minimal certificate, so that TLS is not charged for what other certificates would
// save. Ed25519: its signatures all have one length.
func selfSigned() (c tls.Certificate, err error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return c, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(host)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return c, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}, err
}
