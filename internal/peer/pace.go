package peer

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/netconn"
)

// pacedBodies has bodies of requests come at a minimum pace: [BodyStep] bytes in each time of
// stall. One that is slower is an [Error] with the code Slow to who reads it, and its connection
// ends behind the reply.
func pacedBodies(stall time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		b := &pacedBody{
			ReadCloser: r.Body, w: w, conn: http.NewResponseController(w), stall: stall, time: stall, left: BodyStep,
		}
		r.Body = b
		next.ServeHTTP(w, r)
		if !b.over {
			// net/http reads some of what the service left; that has no time of its own.
			_ = b.conn.SetReadDeadline(time.Now().Add(b.time))
		}
	})
}

type pacedBody struct {
	io.ReadCloser
	w     http.ResponseWriter
	conn  *http.ResponseController
	stall time.Duration

	time time.Duration // that the present step may still take
	left int           // bytes of it
	over bool          // no more is read
}

// Read implements [io.Reader]. Errors: Slow.
func (b *pacedBody) Read(p []byte) (int, error) {
	began := time.Now()
	_ = b.conn.SetReadDeadline(began.Add(max(b.time, time.Millisecond)))
	n, err := b.ReadCloser.Read(p)
	b.time -= time.Since(began)
	if b.left -= n; b.left <= 0 {
		b.time, b.left = b.stall, BodyStep
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.w.Header().Set("Connection", "close") // what comes late must not be taken for the next request
		err = &Error{Code: Slow, Err: err}
	case err != nil:
		b.over = true
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}

// httpConns gives connections as net/http wants them: wrapped if they are to be, given up where
// nobody takes what is written, [replyStep] bytes having the time of stall, and with the state of
// their TLS.
type httpConns struct {
	net.Listener
	stall time.Duration
	wrap  func(net.Conn) net.Conn // nil: not at all
}

// Accept implements [net.Listener].
func (l httpConns) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	secure := httpmsg.TLS(conn)
	if l.wrap != nil {
		conn = netconn.Wrap(l.wrap(conn), conn)
	}
	paced := &pacedConn{conn, l.stall}
	if secure == nil {
		return paced, nil
	}
	return &pacedTLS{paced, *secure}, nil
}

// pacedTLS is one inside TLS; net/http asks it for its state.
type pacedTLS struct {
	*pacedConn
	state tls.ConnectionState
}

// ConnectionState is that of the TLS below.
func (c *pacedTLS) ConnectionState() tls.ConnectionState { return c.state }

type pacedConn struct {
	net.Conn
	stall time.Duration
}

// NetConn is the connection below.
func (c *pacedConn) NetConn() net.Conn { return c.Conn }

// Write implements [net.Conn].
func (c *pacedConn) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		var k int
		_ = c.SetWriteDeadline(time.Now().Add(c.stall))
		k, err = c.Conn.Write(p[:min(len(p), replyStep)])
		n, p = n+k, p[k:]
	}
	return n, err
}

// CloseWrite ends this end's direction, or all of the connection where that is not possible.
func (c *pacedConn) CloseWrite() error {
	if err := netconn.CloseWrite(c.Conn); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return c.Close()
}
