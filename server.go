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
	serving *serving
	closed  bool
}

const (
	defaultAddr = "127.0.0.1:8080"
	// headerTimeout is how long the head of a request may take: slow links need seconds for one.
	headerTimeout = 30 * time.Second
	// idleTimeout is how long a connection of HTTP may wait for its next request.
	idleTimeout = 2 * time.Minute
	// grace is how long Close waits for HTTP requests in progress.
	grace = 5 * time.Second
)

// ListenAndServe listens on Addr and serves until Close is called; then it returns nil. Errors are
// *[Error].
func (s *Server) ListenAndServe() error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", cmp.Or(s.Addr, defaultAddr))
	if err != nil {
		return &Error{Code: Unreachable, Err: err}
	}
	return s.Serve(l)
}

// Serve serves the connections of a listener until Close is called; then it returns nil. It closes
// the listener. Errors are *[Error].
func (s *Server) Serve(l net.Listener) error {
	run, err := s.start(l)
	if err != nil || run == nil {
		return err
	}
	run.serve(func() error { return run.http.Serve(run.port.HTTP()) })
	run.serve(func() error { return run.handler.below.ServeStreams(context.Background(), run.port.Streams()) })
	if run.udp != nil {
		run.serve(func() error { return run.handler.below.ServeStreams(context.Background(), run.udp) })
	}
	run.wait.Wait()
	close(run.done)
	return run.err
}

// start creates what serves a listener; nil if the server was closed before.
func (s *Server) start(l net.Listener) (*serving, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		_ = l.Close()
		return nil, nil
	case s.serving != nil:
		_ = l.Close()
		return nil, invalid(errors.New("a server serves one listener"))
	}
	logger := cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	run := &serving{done: make(chan struct{}), handler: &Handler{
		Handler: s.Handler, Store: s.Store, Common: s.Common, Archive: s.Archive, Log: s.Log,
		AnyPath: true,
	}}
	addresses := map[string]string{}
	if _, port, err := net.SplitHostPort(l.Addr().String()); err == nil {
		addresses["tcp"] = ":" + port
		if s.TLS != nil {
			addresses = map[string]string{"tls": ":" + port}
		} else if run.udp, err = (udp.Transport{}).Listen(context.Background(), l.Addr().String()); err == nil {
			addresses["udp"] = ":" + port
		} else {
			run.udp = nil
			logger.Warn("no streams over UDP", "addr", l.Addr().String(), "err", err)
		}
	}
	if err := run.handler.open(addresses); err != nil {
		_ = l.Close()
		if run.udp != nil {
			_ = run.udp.Close()
		}
		return nil, err
	}
	run.port = oneport.New(l, oneport.Config{TLS: s.TLS, Log: s.Log})
	run.http = &http.Server{
		Handler: run.handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	s.serving = run
	return run, nil
}

// Close accepts nothing more, lets requests in progress end within 5 seconds, closes the streams in
// order, and waits for all that the server started. It is idempotent.
func (s *Server) Close() error {
	s.mu.Lock()
	run := s.serving
	s.closed = true
	s.mu.Unlock()
	if run != nil {
		run.stop()
		<-run.done
	}
	return nil
}

// serving is the state of a server that serves.
type serving struct {
	port    *oneport.Port
	handler *Handler
	http    *http.Server
	udp     net.Listener // nil: none
	wait    sync.WaitGroup
	done    chan struct{} // closed when Serve returns

	once sync.Once
	err  error // why a loop ended without Close; written before wait is done
}

// serve runs one of the loops. All end when one does.
func (r *serving) serve(loop func() error) {
	r.wait.Go(func() {
		err := loop()
		r.once.Do(func() {
			if err != nil {
				r.err = &Error{Code: Unreachable, Err: err}
			}
			r.end()
		})
	})
}

// stop ends all loops.
func (r *serving) stop() { r.once.Do(r.end) }

func (r *serving) end() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	var streams sync.WaitGroup
	streams.Go(func() { _ = r.handler.Close() }) // concurrently with HTTP, so that neither uses up the other's time
	if r.http.Shutdown(ctx) != nil {
		_ = r.http.Close()
	}
	_ = r.port.Close()
	if r.udp != nil {
		_ = r.udp.Close()
	}
	streams.Wait()
}
