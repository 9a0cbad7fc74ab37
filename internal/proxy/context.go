package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/httpmsg"
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
	p       *core
	handler http.Handler
	server  *http.Server
	conns   chan net.Conn
	gone    chan struct{}

	mu   sync.Mutex
	open map[*contextConn]bool
}

// newContexts starts to serve; nil for no handler.
func (p *core) newContexts(handler http.Handler) *contextServer {
	if handler == nil {
		return nil
	}
	c := &contextServer{p: p, handler: handler, conns: make(chan net.Conn), gone: make(chan struct{}),
		open: map[*contextConn]bool{}}
	only := func(w http.ResponseWriter, r *http.Request) {
		p.calls.Add(1)
		defer p.calls.Add(-1)
		if p.isDraining() {
			w.Header().Set("Connection", "close")
		}
		r.TLS = httpmsg.TLS(r.Context().Value(contextConnKey{}).(net.Conn))
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
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, contextConnKey{}, conn)
		},
		ErrorLog: slog.NewLogLogger(p.cfg.Log.Handler(), slog.LevelDebug),
	}
	return c
}

// serve serves a connection to its end, if it begins with a request for the context service.
func (c *contextServer) serve(in *sock.Source) bool {
	if c == nil || c.p.isDraining() {
		return false
	}
	ctx, cancel := c.p.headTime()
	h, _, st, _ := readHead(ctx, in, 0, c.p.cfg.Pause, false)
	cancel()
	path, _, _ := strings.Cut(string(h.Target()), "?")
	if st != stateWhole || path != ContextPath {
		return false
	}
	conn := &contextConn{Conn: oneport.GiveBack(in), asked: true, end: make(chan struct{})}
	c.mu.Lock()
	c.open[conn] = true
	c.mu.Unlock()
	in.Take(len(in.Peek())) // it is the server's
	select {
	case c.conns <- conn:
		select {
		case <-conn.end:
		case <-c.gone:
			_ = conn.Close() // the server may not know of it yet
			<-conn.end
		}
	case <-c.gone:
	}
	c.mu.Lock()
	delete(c.open, conn)
	c.mu.Unlock()
	return true
}

// changed hears of the states of connections.
func (c *contextServer) changed(conn net.Conn, state http.ConnState) {
	own, _ := conn.(*contextConn) // all are
	if state == http.StateIdle {
		own.rests()
	}
	if state == http.StateClosed || state == http.StateHijacked {
		close(own.end)
	}
}

// run serves until close is called.
func (c *contextServer) run() { _ = c.server.Serve(c) } // ends by close only

// drain has requests that wait for changes answered, if the handler can.
func (c *contextServer) drain() {
	if c == nil {
		return
	}
	if waits, ok := c.handler.(interface{ Drain() }); ok {
		waits.Drain()
	}
}

// dismiss ends each connection as soon as it has no request in progress.
func (c *contextServer) dismiss() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.dismiss()
	}
}

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
func (c *contextServer) Addr() net.Addr { return c.p.cfg.Listen.Addr() }

// contextConnKey is the key of the connection in the context of a request.
type contextConnKey struct{}

// contextConn is a connection of the context service. [http.Server.Shutdown] closes connections of
// which it has just read something; this one does not.
type contextConn struct {
	net.Conn
	end chan struct{} // closed when it has ended

	mu        sync.Mutex
	asked     bool // something was read since the last request was answered
	ahead     bool // the byte that the server reads during a request, to hear of its end, is there
	dismissed bool
}

// NetConn is the connection below.
func (c *contextConn) NetConn() net.Conn { return c.Conn }

// Read implements [net.Conn].
func (c *contextConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.ahead = c.asked || n > 0, n == 1 && len(b) == 1
	return n, err
}

// SetReadDeadline implements [net.Conn]; the time of a connection that is to end is over.
func (c *contextConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dismissed && !c.asked {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *contextConn) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dismissed = true
	c.cutLocked()
}

// rests notes that its requests are answered.
func (c *contextConn) rests() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.ahead = c.ahead, false
	c.cutLocked()
}

func (c *contextConn) cutLocked() {
	if c.dismissed && !c.asked {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}
