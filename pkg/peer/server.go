package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Config is what a [Server] is made of.
type Config struct {
	// HTTP accepts plain SOAP and offers. Required. The server closes it.
	HTTP net.Listener
	// Streams accept streams, by the name of their transport ("tcp", "udp", "inproc"). None: every offer is refused. The server closes them.
	Streams map[string]net.Listener
	// Advertise is the host that answers name for tcp and udp streams; empty: that of the URL, whatever the initiator calls it.
	Advertise string
	// Services are offered. Required.
	Services *Services
	// Store and Coders are as in [negotiate.ResponderConfig]. Required; they stay the caller's.
	Store  ctxstore.Store
	Coders negotiate.Coders
	// Stream gives limits, sizes and hooks of streams.
	Stream streamer.Config
	// Limits bound what HTTP clients can take.
	Limits Limits
	// WrapConn, OnSession and OnStream are as in [negotiate.ResponderConfig]; each may be nil.
	WrapConn  func(net.Conn) net.Conn
	OnSession func(negotiate.Facts, net.Conn)
	OnStream  func(negotiate.Facts, *streamer.Stream)
	// Misbehave makes the server do wrong, for tests of the other end.
	Misbehave Misbehavior
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log hears what went wrong; nil: nobody.
	Log *slog.Logger
}

// Server offers services until it is closed. All methods are safe for concurrent use.
type Server struct {
	cfg       Config
	responder *negotiate.Responder
	http      *http.Server
	wait      sync.WaitGroup
	close     sync.Once
	failed    chan error
}

// Start starts a server. On an error the listeners are closed. Errors: BadConfig, and those of negotiate.NewResponder.
func Start(cfg Config) (*Server, error) {
	s, err := newServer(cfg)
	if err != nil {
		closeListeners(cfg)
		return nil, err
	}
	room := &accept.Room{Max: s.cfg.Limits.MaxConns, PerPeer: s.cfg.Limits.connsPerPeer(), Log: s.cfg.Log}
	plain := accept.Limit(accept.Steady(cfg.HTTP, s.cfg.Clock, s.cfg.Log), room)
	s.run("http", func() error { return s.http.Serve(pacedReplies{plain, s.cfg.Limits.Stall}) })
	for name, l := range cfg.Streams {
		s.run(name, func() error { return s.responder.ServeStreams(context.Background(), l) })
	}
	return s, nil
}

func newServer(cfg Config) (*Server, error) {
	if cfg.HTTP == nil || cfg.Services == nil {
		return nil, &Error{Code: BadConfig, At: -1, Err: errors.New("HTTP and Services are required")}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Limits = cfg.Limits.withDefaults()
	addresses := make(map[string]string, len(cfg.Streams))
	for name, l := range cfg.Streams {
		addresses[name] = l.Addr().String()
		if name == "tcp" || name == "udp" {
			_, port, err := net.SplitHostPort(l.Addr().String())
			if err != nil {
				return nil, &Error{Code: BadConfig, At: -1, Err: err}
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
	s := &Server{cfg: cfg, failed: make(chan error, 1+len(cfg.Streams))}
	b := newBreaker(cfg.Misbehave, cfg.Clock)
	var err error
	s.responder, err = negotiate.NewResponder(negotiate.ResponderConfig{
		Store: cfg.Store, Coders: cfg.Coders, Addresses: addresses, Serve: b.serve(cfg.Services.ServeExchange), Sequenced: b.sequenced(cfg.Services), Serves: cfg.Services.Has, ReplySchema: cfg.Services.ReplySchema,
		WrapConn: b.wrap(cfg.WrapConn), OnSession: cfg.OnSession, OnStream: s.onStream, Stream: cfg.Stream, MaxPerPeer: cfg.Limits.MaxPerPeer, Clock: cfg.Clock, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	handler := cfg.Misbehave.handler(cfg.Clock, s.responder.Handler(cfg.Services), cfg.Services)
	s.http = &http.Server{
		Handler:           pacedBodies(cfg.Limits.Stall, handler),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
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
	a, ok := s.cfg.Services.At(path).(Attendant)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.wait.Go(func() {
		defer cancel()
		<-stream.Done()
	})
	s.wait.Go(func() { a.Attend(ctx, stream) })
}

func closeListeners(cfg Config) {
	if cfg.HTTP != nil {
		_ = cfg.HTTP.Close()
	}
	for _, l := range cfg.Streams {
		_ = l.Close()
	}
}

// run serves one listener and reports if it fails.
func (s *Server) run(name string, serve func() error) {
	s.wait.Go(func() {
		if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.failed <- &Error{Code: Failed, At: -1, Err: fmt.Errorf("%s: %w", name, err)}
		}
	})
}

// Failed gives the error of each listener that failed while the server ran.
func (s *Server) Failed() <-chan error { return s.failed }

// Addrs are the addresses that listeners are bound to: "http", and each transport by name.
func (s *Server) Addrs() map[string]net.Addr {
	addrs := map[string]net.Addr{"http": s.cfg.HTTP.Addr()}
	for name, l := range s.cfg.Streams {
		addrs[name] = l.Addr()
	}
	return addrs
}

// URL is that of the service at path.
func (s *Server) URL(path string) string { return "http://" + s.cfg.HTTP.Addr().String() + path }

// Close accepts nothing more, lets what is under way end within 5 seconds, ends the streams in order, and waits for all that the server
// started. It is idempotent.
func (s *Server) Close() error {
	var err error
	s.close.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		// Streams and HTTP requests end side by side, so that neither takes the other's time.
		s.wait.Go(func() { _ = s.responder.Close() })
		if err = s.http.Shutdown(ctx); err != nil {
			err = s.http.Close()
		}
		s.wait.Wait()
	})
	return err
}
