package oneport_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/shared"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hello = frame.Hello{Token: make([]byte, frame.TokenLen), Limits: frame.EarlyLimits}.AppendTo(nil)

// world is a test's port on loopback, before an HTTP server and one that echoes streams.
type world struct {
	t    *testing.T
	port *oneport.Port
	addr string
}

func start(t *testing.T, cfg oneport.Config) *world {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &world{t, oneport.New(l, cfg), l.Addr().String()}
	var wait sync.WaitGroup
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(rw, "%s %s tls=%t ", r.Proto, body, r.TLS != nil)
			if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
				_, _ = io.WriteString(rw, "peer="+r.TLS.PeerCertificates[0].Subject.CommonName)
			}
		})}
	wait.Go(func() { _ = server.Serve(w.port.HTTP()) })
	wait.Go(func() { echo(w.port.Streams()) })
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, w.port.Close())
		wait.Wait()
	})
	return w
}

// echo echoes what streams send, after a word that marks them as streams.
func echo(l net.Listener) {
	var wait sync.WaitGroup
	defer wait.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		wait.Go(func() {
			_, _ = io.WriteString(conn, "stream ")
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		})
	}
}

func (w *world) dial() net.Conn {
	w.t.Helper()
	conn, err := new(net.Dialer).DialContext(w.t.Context(), "tcp", w.addr)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// says returns the response to bytes, once this side has sent all.
func says(t *testing.T, conn net.Conn, pieces ...[]byte) string {
	t.Helper()
	for _, p := range pieces {
		_, err := conn.Write(p)
		require.NoError(t, err)
	}
	require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(got)
}

const request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nwords"

func bytewise(b []byte) (pieces [][]byte) {
	for i := range b {
		pieces = append(pieces, b[i:i+1])
	}
	return pieces
}

// Streams and HTTP are distinguished by their first bytes, in any fragmentation, and lose none.
func TestCleartext(t *testing.T) {
	w := start(t, oneport.Config{})
	stream := string(hello) + "and what follows"
	for range 2 {
		assert.Equal(t, "stream "+stream, says(t, w.dial(), []byte(stream)))
		assert.Equal(t, "stream "+stream, says(t, w.dial(), bytewise([]byte(stream))...))
		assert.Contains(t, says(t, w.dial(), []byte(request)), "HTTP/1.1 words tls=false")
		assert.Contains(t, says(t, w.dial(), bytewise([]byte(request))...), "HTTP/1.1 words tls=false")
	}
	for n := 1; n < 8; n++ {
		assert.Contains(t, says(t, w.dial(), hello[:n]), "400 Bad Request", "a part of the mark is none")
		almost := append(bytes.Clone(hello[:n]), "no mark\r\n\r\n"...)
		assert.Contains(t, says(t, w.dial(), almost), "400 Bad Request")
	}
	assert.Empty(t, says(t, w.dial()), "an end without a word")
}

type lines struct {
	mu sync.Mutex
	strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.String()
}

// Close ends everything in progress: silent connections, handshakes, connections that nobody
// accepts.
func TestClose(t *testing.T) {
	a := shared.NewAuthority(t)
	for _, secure := range []bool{false, true} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		cfg := oneport.Config{}
		if secure {
			cfg.TLS = &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}
		}
		p := oneport.New(l, cfg)
		var conns []net.Conn
		for _, says := range []string{"", "\x16", string(hello), request, string(hello[:3])} {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
			require.NoError(t, err)
			_, err = io.WriteString(conn, says)
			require.NoError(t, err)
			conns = append(conns, conn)
		}
		ended := make(chan error, 1)
		go func() {
			c, err := p.Streams().Accept()
			if err == nil {
				_ = c.Close()
				_, err = p.Streams().Accept()
			}
			ended <- err
		}()
		require.NoError(t, p.HTTP().Close())
		require.NoError(t, p.Streams().Close(), "with the second half all is closed")
		for _, c := range conns {
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
		require.ErrorIs(t, <-ended, net.ErrClosed)
		_, err = p.HTTP().Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, p.Close())
		_, err = new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		require.Error(t, err)
	}
}

// One half continues when the other is closed.
func TestHalfClosed(t *testing.T) {
	w := start(t, oneport.Config{})
	require.NoError(t, w.port.Streams().Close())
	assert.Contains(t, says(t, w.dial(), []byte(request)), "HTTP/1.1 words")
	conn := w.dial()
	_, err := conn.Write(hello)
	require.NoError(t, err)
	got, _ := io.ReadAll(conn)
	assert.Empty(t, got)
}

// poor is a listener without a descriptor at first, and then broken.
type poor struct {
	*pipes
	errs []error
}

func (l *poor) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	return l.pipes.Accept()
}

// Temporary errors are waited out; a permanent one is that of both halves.
func TestAcceptErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &poor{listenPipes(), []error{syscall.EMFILE, syscall.ECONNABORTED}}
		p := oneport.New(l, oneport.Config{})
		streams := accepted(p.Streams())
		conn := l.dial("192.0.2.2")
		_, err := conn.Write(hello)
		require.NoError(t, err)
		_ = (<-streams).Close()
		require.NoError(t, p.Close())

		l = &poor{listenPipes(), []error{errors.New("broken")}}
		p = oneport.New(l, oneport.Config{})
		_, err = p.HTTP().Accept()
		require.EqualError(t, err, "broken")
		_, err = p.Streams().Accept()
		require.EqualError(t, err, "broken")
		require.NoError(t, p.Close())
	})
}

// A connection that is reset reports so after what was made readable again, in TLS and without.
func TestAbort(t *testing.T) {
	a := shared.NewAuthority(t)
	for _, secure := range []bool{false, true} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		cfg := oneport.Config{}
		if secure {
			cfg.TLS = &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}
		}
		p := oneport.New(l, cfg)
		conns := accepted(p.HTTP())
		w := &world{t, p, l.Addr().String()}
		conn := net.Conn(nil)
		if secure {
			conn = w.secure(clientOf(a))
		} else {
			conn = w.dial()
		}
		_, err = io.WriteString(conn, "hello")
		require.NoError(t, err)
		require.NoError(t, (<-conns).(interface{ Abort() error }).Abort())
		_, err = io.ReadAll(conn)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.NoError(t, p.Close())
	}
}
