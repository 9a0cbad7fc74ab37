package proxy

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/sock"
)

// ContextPath is where Config.Context is served.
const ContextPath = "/context"

// contextHeader, contextBody and contextIdle bound the time that clients of the context service may
// take: a value of 16 MiB comes within 10 minutes at 300 kbit/s.
const (
	contextHeader = 30 * time.Second
	contextBody   = 10 * time.Minute
	contextIdle   = 2 * time.Minute
)

// contextServer serves the connections of clients that begin with a request for the context
// service. It is their listener.
type contextServer struct {
	server *http.Server
	conns  chan net.Conn
	addr   net.Addr
	gone   chan struct{}

	mu   sync.Mutex
	ends map[net.Conn]chan struct{}
}

// newContexts starts to serve; nil for no handler.
func newContexts(handler http.Handler, addr net.Addr, logger *slog.Logger) *contextServer {
	if handler == nil {
		return nil
	}
	c := &contextServer{conns: make(chan net.Conn), addr: addr, gone: make(chan struct{}),
		ends: map[net.Conn]chan struct{}{}}
	only := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != ContextPath {
			http.Error(w, "requests for other paths need a connection of their own", http.StatusMisdirectedRequest)
			return
		}
		handler.ServeHTTP(w, r)
	}
	c.server = &http.Server{
		Handler:           http.HandlerFunc(only),
		ReadHeaderTimeout: contextHeader, ReadTimeout: contextBody, WriteTimeout: contextBody,
		IdleTimeout: contextIdle, MaxHeaderBytes: maxHeadOctets, ConnState: c.changed,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	return c
}

// serve serves a connection to its end, if it begins with a request for the context service.
func (c *contextServer) serve(p *Proxy, in *sock.Source) bool {
	if c == nil {
		return false
	}
	ctx, cancel := p.headTime()
	h, _, st, _ := readHead(ctx, in, 0, p.cfg.Pause, false)
	cancel()
	path, _, _ := strings.Cut(string(h.Target()), "?")
	if st != stateWhole || path != ContextPath {
		return false
	}
	conn, end := oneport.GiveBack(in), make(chan struct{})
	c.mu.Lock()
	c.ends[conn] = end
	c.mu.Unlock()
	select {
	case c.conns <- conn:
		select {
		case <-end:
		case <-c.gone:
			_ = conn.Close() // the server may not know of it yet
			<-end
		}
	case <-c.gone:
	}
	return true
}

// changed hears of the states of connections.
func (c *contextServer) changed(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if end := c.ends[conn]; end != nil {
		delete(c.ends, conn)
		close(end)
	}
}

// run serves until close is called.
func (c *contextServer) run() { _ = c.server.Serve(c) } // ends by close only

// close ends all connections.
func (c *contextServer) close() {
	if c != nil {
		close(c.gone)
		_ = c.server.Close()
	}
}

// Accept implements [net.Listener].
func (c *contextServer) Accept() (net.Conn, error) {
	select {
	case conn := <-c.conns:
		return conn, nil
	case <-c.gone:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (c *contextServer) Close() error { return nil }

// Addr implements [net.Listener].
func (c *contextServer) Addr() net.Addr { return c.addr }
