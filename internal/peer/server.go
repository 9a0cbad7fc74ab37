package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// Config is what a [Server] is made of.
type Config struct {
	// HTTP accepts plain SOAP, offers, and streams over tcp, or with TLS over tls. Required. The
	// server closes it.
	HTTP net.Listener
	// TLS, if given, has HTTP take TLS only.
	TLS *tls.Config
	// PlainOnly: HTTP takes no streams, and becomes none. Without Streams every offer is refused
	// then.
	PlainOnly bool
	// Streams accept streams at further addresses, by the name of their transport ("tls", "tcp",
	// "udp", "inproc"); those of tls are to take TLS. Answers name them, and for other transports
	// HTTP. The server closes them.
	Streams map[string]net.Listener
	// Admit is as in [responder.Config].
	Admit func(*http.Request) error
	// Advertise is the host that answers name for tls, tcp and udp streams; empty: that of the URL,
	// whatever the initiator calls it.
	Advertise string
	// Services are offered. Required.
	Services *Services
	// Store and Coders are as in [responder.Config]. Required; they stay the caller's.
	Store  ctxstore.Store
	Coders coders.Func
	// Common and Archive are as in [responder.Config].
	Common  *unchanging.CommonStore
	Archive bool
	// Stream gives limits, sizes and hooks of streams.
	Stream streamer.Config
	// Limits bound what HTTP clients can take.
	Limits Limits
	// WrapConn, if given, wraps each connection, of HTTP as of streams, inside its TLS (a
	// recorder).
	WrapConn func(net.Conn) net.Conn
	// OnSession and OnStream are as in [responder.Config]; each may be nil.
	OnSession func(negotiate.Facts, net.Conn)
	OnStream  func(negotiate.Facts, *streamer.Stream)
	// Meter counts calls and streams, by the path of the service; nil means one that nobody looks
	// at.
	Meter *meter.Meter
	// Reliable are the versions of WS-ReliableMessaging in which messages are taken in plain SOAP,
	// exactly once and in order; empty: none. Requests and replies are kept whole then, and have
	// their header blocks of WS-Addressing processed.
	Reliable []soaprm.Protocol
	// Callbacks are as in [soaprm.DestinationConfig], CallbackClient is its Client.
	Callbacks      []string
	CallbackClient *http.Client
	// Misbehave makes the server do wrong, for tests of the peer.
	Misbehave Misbehavior
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log hears what went wrong; nil: nobody.
	Log *slog.Logger
}

// Server offers services until it is closed. All methods are safe for concurrent use.
type Server struct {
	cfg         Config
	negotiating *responder.Handler
	http        *http.Server
	plain       http.Handler
	serving     *responder.Server
	reliable    *soaprm.SequenceDestination // nil: there is none
	wait        sync.WaitGroup
	close       sync.Once
	failed      chan error
}

// Start starts a server. On an error the listeners are closed. Errors: BadConfig, and those of
// responder.New.
func Start(cfg Config) (*Server, error) {
	s, err := newServer(cfg)
	if err != nil {
		closeListeners(cfg)
		return nil, err
	}
	limits := &s.cfg.Limits
	port := oneport.New(cfg.HTTP, oneport.Config{
		TLS: cfg.TLS, NoStreams: cfg.PlainOnly, MaxSniffed: limits.MaxConns, MaxPerPeer: limits.connsPerPeer(),
		Clock: s.cfg.Clock, Log: s.cfg.Log,
	})
	room := &accept.Room{Max: limits.MaxConns, PerPeer: limits.connsPerPeer(), Log: s.cfg.Log}
	s.serving = responder.StartServer(responder.ServerConfig{
		Port: port, HTTP: s.http, Plain: httpConns{accept.Limit(port.HTTP(), room, nil), limits.Stall, cfg.WrapConn},
		Handler: s.negotiating, Streams: cfg.Streams,
		Failed: func(name string, err error) {
			if !errors.Is(err, net.ErrClosed) {
				s.failed <- &Error{Code: Failed, Err: fmt.Errorf("%s: %w", name, err)}
			}
		},
	})
	return s, nil
}

// Plain answers calls that come in plain SOAP by other means than HTTP, and counts them.
func (s *Server) Plain() http.Handler { return s.plain }

// Transactional reports whether the service at a path puts its effects into a transaction, which it
// may be given by [InTransaction].
func (s *Server) Transactional(path string) bool { return s.cfg.Services.At(path).Transactional }

func newServer(cfg Config) (*Server, error) {
	if cfg.HTTP == nil || cfg.Services == nil {
		return nil, &Error{Code: BadConfig, Err: errors.New("HTTP and Services are required")}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Limits = cfg.Limits.withDefaults()
	addresses := map[string]string{}
	for name, addr := range cfg.streamAddrs() {
		addresses[name] = addr.String()
		if name != "inproc" {
			_, port, err := net.SplitHostPort(addr.String())
			if err != nil {
				return nil, &Error{Code: BadConfig, Err: err}
			}
			addresses[name] = net.JoinHostPort(cfg.Advertise, port)
		}
	}
	if cfg.Misbehave.kind == refuses {
		addresses = nil // without a stream to agree on, every offer is refused
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	if cfg.Meter == nil {
		cfg.Meter = meter.New(cfg.Clock.Now())
	}
	s := &Server{cfg: cfg, failed: make(chan error, 2+len(cfg.Streams))}
	b := newBreaker(cfg.Misbehave, cfg.Clock)
	services := http.Handler(&described{Services: cfg.Services, streams: declaredStreams(addresses),
		policy: soaprm.Policy(cfg.Reliable)})
	if cfg.Misbehave.kind == drifts {
		services = (&drift{every: int64(cfg.Misbehave.count)}).handler(services)
	}
	transactional := func(path string) bool { return cfg.Services.At(path).Transactional }
	if len(cfg.Reliable) > 0 {
		endpoint, err := soaprm.NewDestination(context.Background(), services, soaprm.DestinationConfig{
			Store: cfg.Store, Versions: cfg.Reliable, Transactional: transactional, Guaranteed: guaranteed,
			Callbacks: cfg.Callbacks, Client: cfg.CallbackClient, MaxPerPeer: cfg.Limits.MaxPerPeer,
			Clock: cfg.Clock, Log: cfg.Log,
		})
		if err != nil {
			return nil, err
		}
		s.reliable, services = endpoint, endpoint
	}
	services = cfg.Limits.Work.handler(cfg.Clock, b.handler(services))
	services = metered(cfg.Meter.Serve, cfg.Services, cfg.Clock, services)
	s.plain = services
	var err error
	s.negotiating, err = responder.NewHandler(services, responder.Config{
		Store: cfg.Store, Coders: cfg.Coders, Addresses: addresses, Admit: cfg.Admit,
		Sequenced:   responder.SequencedHandler(services, transactional, cfg.Log),
		Serves:      cfg.Services.Has,
		Contract:    cfg.Services.contract,
		ReplySchema: func(path string) *schema.Schema { return cfg.Services.At(path).ReplySchema },
		WrapConn:    cfg.WrapConn, OnSession: b.onSession(cfg.OnSession), OnStream: s.onStream,
		Common: cfg.Common, Archive: cfg.Archive, Stream: cfg.Stream, MaxPerPeer: cfg.Limits.MaxPerPeer,
		Clock: cfg.Clock, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	behaved := http.Handler(s.negotiating)
	if cfg.PlainOnly {
		behaved = withoutUpgrade(behaved)
	}
	handler := cfg.Misbehave.handler(cfg.Clock, behaved, services)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // of clients that know beforehand; in TLS oneport selects HTTP/1.1
	s.http = &http.Server{
		Handler: pacedBodies(cfg.Limits.Stall, handler), Protocols: protocols,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// guaranteed reports whether a message came in a sequence of its session.
func guaranteed(ctx context.Context) bool {
	facts := responder.FactsOf(ctx)
	return facts != nil && facts.Sequence != ""
}

// withoutUpgrade has no connection upgraded: who asks for a stream is told of another address, if
// there is one.
func withoutUpgrade(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Upgrade")
		next.ServeHTTP(w, r)
	})
}

// onStream hands a stream to the service at whose path it was negotiated, if that wants it.
func (s *Server) onStream(facts negotiate.Facts, stream *streamer.Stream) {
	if s.cfg.OnStream != nil {
		s.cfg.OnStream(facts, stream)
	}
	path, err := url.PathUnescape(facts.Path)
	if err != nil {
		return
	}
	s.cfg.Meter.Serve.Upstream(s.cfg.Services.name(path)).Opened(stream, s.cfg.Clock.Now())
	attend := s.cfg.Services.At(path).Attend
	if attend == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.wait.Go(func() {
		defer cancel()
		<-stream.Done()
	})
	s.wait.Go(func() { attend(ctx, stream) })
}

func closeListeners(cfg Config) {
	if cfg.HTTP != nil {
		_ = cfg.HTTP.Close()
	}
	for _, l := range cfg.Streams {
		_ = l.Close()
	}
}

// Failed gives the error of each listener that failed while the server ran.
func (s *Server) Failed() <-chan error { return s.failed }

// Addrs are the addresses that listeners are bound to: "http", and each transport by name.
func (s *Server) Addrs() map[string]net.Addr {
	addrs := s.cfg.streamAddrs()
	addrs["http"] = s.cfg.HTTP.Addr()
	return addrs
}

// streamAddrs is where streams are accepted, by the name of the transport.
func (c *Config) streamAddrs() map[string]net.Addr {
	addrs := map[string]net.Addr{}
	switch {
	case c.PlainOnly:
	case c.TLS != nil:
		addrs["tls"] = c.HTTP.Addr()
	default:
		addrs["tcp"] = c.HTTP.Addr()
	}
	for name, l := range c.Streams {
		addrs[name] = l.Addr()
	}
	return addrs
}

// URL is that of the service at path.
func (s *Server) URL(path string) string {
	scheme := "http"
	if s.cfg.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + s.cfg.HTTP.Addr().String() + path
}

// Close accepts nothing more, lets what is under way end within 5 seconds, ends the streams in
// order, and waits for all that the server started. It is idempotent.
func (s *Server) Close() error {
	var err error
	s.close.Do(func() {
		err = s.serving.Close()
		s.wait.Wait()
		if s.reliable != nil {
			err = errors.Join(err, s.reliable.Close())
		}
	})
	return err
}
