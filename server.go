package hhfr

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// Server serves unchanged services of net/http at one address: plain SOAP, streams on connections
// of HTTP and on their own, and, without TLS, streams over UDP at the same port. Fields must not be
// changed once it serves; a server serves one listener. Its methods are safe for concurrent use.
type Server struct {
	// Addr is the host and port to listen on; "": 127.0.0.1:8080. A port alone (":8080") means all
	// addresses of the machine.
	Addr string
	// Handler has the services; nil: [http.DefaultServeMux].
	Handler http.Handler
	// TLS has the certificates, and the requirements on clients' certificates; nil: cleartext. With
	// it the address accepts TLS only. Its NextProtos are for HTTP; empty: http/1.1.
	TLS *tls.Config
	// Store holds sessions, the shapes of messages, and what was handled under a guarantee; nil:
	// memory, for as long as the server lives.
	Store ctxstore.Store
	// Common is a context store that clients use as well; nil: none is agreed to.
	Common *CommonContexts
	// Archive keeps what decodes recordings of sessions in Store for good; false: as long as the
	// sessions last.
	Archive bool
	// Log receives problems that were survived; nil: nothing is logged.
	Log *slog.Logger

	mu      sync.Mutex
	serving *responder.Server
	handler *Handler
	closed  bool
}

const (
	defaultAddr = "127.0.0.1:8080"
	// headerTimeout is how long the head of a request may take: slow links need seconds for one.
	headerTimeout = 30 * time.Second
	// idleTimeout is how long a connection of HTTP may wait for its next request.
	idleTimeout = 2 * time.Minute
)

// ListenAndServe listens on Addr and serves until [Server.Close] or [Server.Shutdown] has returned;
// then it returns nil. Errors are *[Error].
func (s *Server) ListenAndServe() error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", cmp.Or(s.Addr, defaultAddr))
	if err != nil {
		return &Error{Code: Unreachable, Err: err}
	}
	return s.Serve(l)
}

// Serve serves the connections of a listener until [Server.Close] or [Server.Shutdown] has
// returned; then it returns nil. It closes the listener. Errors are *[Error].
func (s *Server) Serve(l net.Listener) error {
	if l == nil {
		return invalid(errors.New("no listener"))
	}
	failed := make(chan error, 3)
	run, err := s.start(l, func(_ string, err error) { failed <- &Error{Code: Unreachable, Err: err} })
	if err != nil || run == nil {
		return err
	}
	select {
	case err = <-failed:
		_ = run.Close()
	case <-run.Done():
	}
	return err
}

// start serves a listener; nil if the server was closed before.
func (s *Server) start(l net.Listener, failed func(name string, err error)) (*responder.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		_ = l.Close()
		return nil, nil
	case s.serving != nil:
		_ = l.Close()
		return nil, invalid(errors.New("a server serves one listener"))
	case s.TLS != nil && len(s.TLS.Certificates) == 0 && s.TLS.GetCertificate == nil &&
		s.TLS.GetConfigForClient == nil:
		_ = l.Close()
		return nil, invalid(errors.New("TLS has no certificate: set Certificates or GetCertificate"))
	}
	logger := cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	handler := &Handler{
		Handler: s.Handler, Store: s.Store, Common: s.Common, Archive: s.Archive, Log: s.Log,
		AnyPath: true,
	}
	streams := map[string]net.Listener{}
	addresses := map[string]string{}
	if _, port, err := net.SplitHostPort(l.Addr().String()); err == nil {
		addresses["tcp"] = ":" + port
		if s.TLS != nil {
			addresses = map[string]string{"tls": ":" + port}
		} else if datagrams, err := (udp.Transport{}).Listen(context.Background(), l.Addr().String()); err == nil {
			addresses["udp"], streams["udp"] = ":"+port, datagrams
		} else {
			logger.Warn("no streams over UDP", "addr", l.Addr().String(), "err", err)
		}
	}
	if err := handler.open(addresses); err != nil {
		_ = l.Close()
		for _, datagrams := range streams {
			_ = datagrams.Close()
		}
		return nil, err
	}
	port := oneport.New(l, oneport.Config{TLS: s.TLS, Log: s.Log})
	s.handler = handler
	s.serving = responder.StartServer(responder.ServerConfig{
		Port: port, Plain: port.HTTP(), Handler: handler.below, Streams: streams, Failed: failed,
		HTTP: &http.Server{
			Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
			ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		},
	})
	return s.serving, nil
}

// Close accepts nothing more, lets requests in progress end within 5 seconds, closes the streams in
// order, and waits for all that the server started. It is idempotent.
func (s *Server) Close() error {
	if run := s.end(); run != nil {
		_ = run.Close()
	}
	return nil
}

// Shutdown is Close for requests that take longer, as [http.Server.Shutdown]: it accepts nothing
// more, lets no request begin, not on the streams either, and waits until those in progress are
// over and the streams are closed in order. A message under a guarantee that was not handled stays
// with its client. If ctx is done before, the error is Unfinished; what is left goes on until
// Close, which may be called at any time. A server that has not begun to serve serves nothing then.
func (s *Server) Shutdown(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	if run := s.end(); run != nil {
		return unfinished(run.Shutdown(ctx))
	}
	return nil
}

// end has the server serve no more listener, and returns what serves its own; nil: nothing.
func (s *Server) end() *responder.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.serving
}

// unfinished is the error of a Shutdown that waited too long; nil: it did not.
func unfinished(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: Unfinished, Err: err}
}
