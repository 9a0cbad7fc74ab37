package responder

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/oneport"
)

// grace is how long [Server.Close] waits for requests in progress.
const grace = 5 * time.Second

// ServerConfig is what a [Server] serves. It belongs to the server from [StartServer] on.
type ServerConfig struct {
	// Port accepts connections; those of streams go to Handler.
	Port *oneport.Port
	// HTTP serves the other connections, which come from Plain, a listener over that of Port.
	HTTP  *http.Server
	Plain net.Listener
	// Handler serves streams. HTTP has it as its handler, or below that.
	Handler *Handler
	// Streams accept streams at further addresses, by the name of their transport.
	Streams map[string]net.Listener
	// Failed is called for each listener that fails before Close, with "http" or its name in
	// Streams. It must not block. The others go on.
	Failed func(name string, err error)
}

// Server serves plain SOAP and streams, until it is closed. All methods are safe for concurrent
// use.
type Server struct {
	cfg                    ServerConfig
	wait                   sync.WaitGroup
	shutting, close, ended sync.Once
	closing, done          chan struct{}
	err                    error
}

// StartServer starts a server.
func StartServer(cfg ServerConfig) *Server {
	s := &Server{cfg: cfg, closing: make(chan struct{}), done: make(chan struct{})}
	s.run("http", func() error { return cfg.HTTP.Serve(cfg.Plain) })
	s.run("http", func() error { return cfg.Handler.ServeStreams(context.Background(), cfg.Port.Streams()) })
	for name, l := range cfg.Streams {
		s.run(name, func() error { return cfg.Handler.ServeStreams(context.Background(), l) })
	}
	return s
}

// run serves one listener.
func (s *Server) run(name string, serve func() error) {
	s.wait.Go(func() {
		err := serve()
		select {
		case <-s.closing:
		default:
			if err != nil {
				s.cfg.Failed(name, err)
			}
		}
	})
}

// Done is closed when Close or Shutdown has returned, whichever does first.
func (s *Server) Done() <-chan struct{} { return s.done }

// Close accepts nothing more, lets requests in progress end within 5 seconds, ends the streams in
// order, and waits for all that the server started. It is idempotent.
func (s *Server) Close() error {
	s.close.Do(func() {
		defer s.over()
		s.shut()
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		// Concurrently with HTTP, so that neither uses up the other's time.
		s.wait.Go(func() { _ = s.cfg.Handler.Close() })
		if s.err = s.cfg.HTTP.Shutdown(ctx); s.err != nil {
			s.err = s.cfg.HTTP.Close()
		}
		s.err = errors.Join(s.err, s.cfg.Port.Close())
		s.wait.Wait()
	})
	return s.err
}

// Shutdown is Close for requests that take longer: it waits until those in progress are over, or
// until ctx is done. Then its error is the cause of that, and what is left goes on until Close.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.over()
	s.shut()
	streams := make(chan error, 1)
	go func() { streams <- s.cfg.Handler.Shutdown(ctx) }()
	err := s.cfg.HTTP.Shutdown(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err := cmp.Or(<-streams, err); err != nil {
		return err
	}
	return s.Close() // nothing is left that it would have to wait for
}

// shut has listeners that end be none that fail.
func (s *Server) shut() { s.shutting.Do(func() { close(s.closing) }) }

// over tells who waits for Done.
func (s *Server) over() { s.ended.Do(func() { close(s.done) }) }
