package infosets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/inproc"
)

// Hop is a hop of HTTP within the process, before origins that may speak Fast Infoset: who dials by
// it speaks XML, byte for byte as to the origin, and what its [Transport] converts is converted. It
// is for http alone: the origin's end of a connection has no TLS. Upgrades and CONNECT do not pass.
type Hop struct {
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	transport *Transport
	inside    inproc.Transport
	server    *http.Server
	came      *hopListener
}

// NewHop returns one that opens connections to origins with dial, as [net.Dialer.DialContext] does;
// optimistic and tell are those of its [Transport]. The caller closes it.
func NewHop(
	dial func(ctx context.Context, network, addr string) (net.Conn, error), optimistic bool,
	tell func(service string, other *http.Response, unread error),
) *Hop {
	h := &Hop{dial: dial, came: &hopListener{conns: make(chan net.Conn), closed: make(chan struct{})}}
	h.transport = &Transport{Base: toOrigin{}, Optimistic: optimistic, Tell: tell}
	h.server = &http.Server{
		Handler:  http.HandlerFunc(h.pass),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // of ends, which the peer knows
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, hopKey{}, c)
		},
		ConnState: func(c net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				c.(*hopConn).to.CloseIdleConnections()
			}
		},
	}
	go func() { _ = h.server.Serve(h.came) }() // until it is closed
	return h
}

// Close ends all connections.
func (h *Hop) Close() error { return h.server.Close() }

// idle is how long a connection to an origin waits for a further request: origins close them, too,
// and a request that meets that has no reply.
const idle = 5 * time.Second

// Dial connects with an origin. Errors: those of the function that opens connections.
func (h *Hop) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	origin, err := h.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	first := make(chan net.Conn, 1)
	first <- origin
	to := &http.Transport{
		DisableCompression: true, IdleConnTimeout: idle,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case conn := <-first:
				return conn, nil
			default:
				return h.dial(ctx, network, addr)
			}
		},
	}
	here, there, err := h.pipe(ctx)
	if err == nil {
		open, leave := context.WithCancel(context.Background())
		select {
		case h.came.conns <- &hopConn{
			Conn: there, ends: origin, open: open, leave: leave, to: to, addr: addr, first: first,
		}:
			return &hopConn{Conn: here, ends: origin, leave: leave}, nil
		case <-h.came.closed:
			leave()
			err = net.ErrClosed
			_ = here.Close()
		}
	}
	_ = origin.Close()
	return nil, err
}

// pipe is a connection within the process.
func (h *Hop) pipe(ctx context.Context) (here, there net.Conn, err error) {
	l, err := h.inside.Listen(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = l.Close() }()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, _ := l.Accept() // nil if nobody comes
		accepted <- conn
	}()
	if here, err = h.inside.Dial(ctx, l.Addr().String()); err != nil {
		return nil, nil, err
	}
	return here, <-accepted, nil
}

// hopConn is an end of a connection within the process; it has the addresses of the one to the
// origin.
type hopConn struct {
	net.Conn
	ends  net.Conn
	open  context.Context // ends when one of both ends is closed
	leave context.CancelFunc
	to    *http.Transport // of the origin; nil: the end of who dialed
	addr  string
	first chan net.Conn // the connection to it, until a request goes there
}

// NetConn is the connection below.
func (c *hopConn) NetConn() net.Conn { return c.Conn }

// LocalAddr implements [net.Conn].
func (c *hopConn) LocalAddr() net.Addr { return c.ends.LocalAddr() }

// RemoteAddr implements [net.Conn].
func (c *hopConn) RemoteAddr() net.Addr { return c.ends.RemoteAddr() }

// Close implements [net.Conn]. The connection to an origin that no request went to ends as well.
func (c *hopConn) Close() error {
	select {
	case conn := <-c.first: // not of a nil channel
		_ = conn.Close()
	default:
	}
	c.leave()
	return c.Conn.Close()
}

type hopKey struct{}

// toOrigin sends requests over the connection that they came for.
type toOrigin struct{}

// RoundTrip implements [http.RoundTripper].
func (toOrigin) RoundTrip(r *http.Request) (*http.Response, error) {
	return r.Context().Value(hopKey{}).(*hopConn).to.RoundTrip(r)
}

// ofOneHop are the fields that concern a connection (RFC 9110 7.6.1).
var ofOneHop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// withoutHop deletes the fields that concern a connection, and those that Connection names.
func withoutHop(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range ofOneHop {
		h.Del(name)
	}
}

// pass passes on a request and its reply. Who has ended his direction waits for the reply still,
// which net/http takes for his end: so a request ends with its connection.
func (h *Hop) pass(w http.ResponseWriter, r *http.Request) {
	from := r.Context().Value(hopKey{}).(*hopConn)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(from.open, cancel)()
	out := r.Clone(ctx)
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", from.addr, ""
	withoutHop(out.Header)
	if _, named := out.Header["User-Agent"]; !named {
		out.Header.Set("User-Agent", "") // net/http has one of its own otherwise
	}
	resp, err := h.transport.RoundTrip(out)
	if err != nil {
		said := fmt.Sprintf("the server cannot be asked, or its reply not be read: %v", err)
		http.Error(w, said, http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	withoutHop(resp.Header)
	maps.Copy(w.Header(), resp.Header)
	if _, typed := resp.Header["Content-Type"]; !typed {
		w.Header()["Content-Type"] = nil // net/http guesses one otherwise
	}
	w.WriteHeader(resp.StatusCode)
	flushed := http.NewResponseController(w)
	b := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(b)
		if n > 0 {
			if _, failed := w.Write(b[:n]); failed != nil {
				return // the client is gone
			}
			_ = flushed.Flush()
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return
		default:
			panic(http.ErrAbortHandler) // the reply is cut
		}
	}
}

// hopListener has the connections that were dialed.
type hopListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept implements [net.Listener].
func (l *hopListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *hopListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (l *hopListener) Addr() net.Addr { return inproc.Addr("hop") }
