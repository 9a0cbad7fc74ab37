package oneport_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
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

	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hello = frame.Hello{Token: make([]byte, frame.TokenLen), Limits: frame.EarlyLimits}.AppendTo(nil)

// world is a port of the test on loopback, before an HTTP server and one that gives streams back what they say.
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
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
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

// echo gives back what streams say, behind a word that tells they are.
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

// says gives what comes back for bytes, once this end has said all.
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

// Streams and HTTP are told apart by their first bytes, in whatever pieces they come, and lose none.
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

func clientOf(a *shared.Authority, protocols ...string) *tls.Config {
	return &tls.Config{RootCAs: a.Pool(), NextProtos: protocols}
}

func (w *world) secure(cfg *tls.Config) *tls.Conn {
	w.t.Helper()
	conn, err := (&tls.Dialer{Config: cfg}).DialContext(w.t.Context(), "tcp", w.addr)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn.(*tls.Conn)
}

// In TLS the protocol that was selected tells, and without one the first bytes.
func TestTLS(t *testing.T) {
	a := shared.NewAuthority(t)
	cert := a.Issue(time.Hour, "127.0.0.1")
	w := start(t, oneport.Config{TLS: &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: a.Pool(), ClientAuth: tls.VerifyClientCertIfGiven,
	}})
	stream := string(hello) + "and what follows"
	for name, tc := range map[string]struct {
		protocols          []string
		says, want, chosen string
	}{
		"stream by ALPN":        {[]string{"hhfr/1", "h2", "http/1.1"}, stream, "stream " + stream, "hhfr/1"},
		"stream of other bytes": {[]string{"hhfr/1"}, request, "stream " + request, "hhfr/1"},
		"http by ALPN":          {[]string{"h2", "http/1.1"}, request, "HTTP/1.1 words tls=true", "http/1.1"},
		"no stream by http":     {[]string{"http/1.1"}, stream, "400 Bad Request", "http/1.1"},
		"http without ALPN":     {nil, request, "HTTP/1.1 words tls=true", ""},
		"stream without ALPN":   {nil, stream, "stream " + stream, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn := w.secure(clientOf(a, tc.protocols...))
			assert.Equal(t, tc.chosen, conn.ConnectionState().NegotiatedProtocol)
			assert.Contains(t, says(t, conn, []byte(tc.says)), tc.want)
		})
	}
	for _, protocols := range [][]string{nil, {"http/1.1"}} {
		cfg := clientOf(a, protocols...)
		cfg.Certificates = []tls.Certificate{cert}
		assert.Contains(t, says(t, w.secure(cfg), []byte(request)), "peer=test", "net/http sees the client's certificate")
	}
	older := clientOf(a, "hhfr/1", "http/1.1")
	older.MaxVersion = tls.VersionTLS12
	assert.Contains(t, says(t, w.secure(older), []byte(request)), "HTTP/1.1 words", "streams have TLS 1.3")
	_, err := (&tls.Dialer{Config: clientOf(a, "other")}).DialContext(t.Context(), "tcp", w.addr)
	require.ErrorContains(t, err, "no application protocol")
}

// HTTP/2 is spoken where the configuration has it, since net/http gets the connection as it wants it.
func TestHTTP2(t *testing.T) {
	a := shared.NewAuthority(t)
	w := start(t, oneport.Config{TLS: &tls.Config{
		Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}, NextProtos: []string{"h2", "http/1.1"},
	}})
	transport := &http.Transport{TLSClientConfig: clientOf(a), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post("https://"+w.addr, "text/plain", strings.NewReader("words"))
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Contains(t, string(body), "HTTP/2.0 words tls=true")
	assert.Equal(t, "stream x", says(t, w.secure(clientOf(a, "hhfr/1", "h2")), []byte("x")))
}

// Where there are no streams, all is HTTP's.
func TestNoStreams(t *testing.T) {
	w := start(t, oneport.Config{NoStreams: true})
	assert.Contains(t, says(t, w.dial(), hello), "400 Bad Request")
	assert.Contains(t, says(t, w.dial(), []byte(request)), "HTTP/1.1 words")
	a := shared.NewAuthority(t)
	w = start(t, oneport.Config{NoStreams: true, TLS: &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}})
	assert.Contains(t, says(t, w.secure(clientOf(a, "hhfr/1", "http/1.1")), []byte(request)), "HTTP/1.1 words tls=true")
	assert.Contains(t, says(t, w.secure(clientOf(a)), hello), "400 Bad Request")
}

// A configuration that is chosen for each client has streams, too, and tickets resume its sessions.
func TestConfigForClient(t *testing.T) {
	a := shared.NewAuthority(t)
	own := &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}
	w := start(t, oneport.Config{TLS: &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return own, nil }}})
	cfg := clientOf(a, "hhfr/1")
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for times := range 3 {
		conn := w.secure(cfg)
		assert.Equal(t, "stream x", says(t, conn, []byte("x")))
		assert.Equal(t, times > 0, conn.ConnectionState().DidResume)
	}
}

// What is no TLS is not served where only TLS is taken: HTTP is told why, a stream is closed.
func TestCleartextWhereTLSIsTaken(t *testing.T) {
	a := shared.NewAuthority(t)
	var logged lines
	w := start(t, oneport.Config{
		TLS: &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}},
		Log: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	for _, pieces := range [][][]byte{{[]byte(request)}, bytewise([]byte(request))} {
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(says(t, w.dial(), pieces...))), nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, resp.StatusCode)
		assert.Equal(t, "hhfr: this address takes https only\n", string(body))
	}
	conn := w.dial()
	_, err := conn.Write(hello)
	require.NoError(t, err)
	got, _ := io.ReadAll(conn)
	assert.Empty(t, got)
	assert.Contains(t, logged.String(), "cleartext where only TLS is taken")
	_, err = (&tls.Dialer{Config: &tls.Config{}}).DialContext(t.Context(), "tcp", w.addr)
	require.Error(t, err)
	require.Eventually(t, func() bool { return strings.Count(logged.String(), "msg=handshake") == 4 }, time.Minute, time.Millisecond)
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

// pipes is a listener of connections in the process, so that time can be that of a bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func listenPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }

// from is a connection of a client at an address.
type from struct {
	net.Conn
	addr net.Addr
}

func (c from) RemoteAddr() net.Addr { return c.addr }

func (l *pipes) dial(ip string) net.Conn {
	here, there := net.Pipe()
	l.conns <- from{there, &net.TCPAddr{IP: net.ParseIP(ip), Port: 9}}
	return here
}

// accepted has the connections of a listener in the order in which they come.
func accepted(l net.Listener) <-chan net.Conn {
	conns := make(chan net.Conn, 100)
	go func() {
		defer close(conns)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	return conns
}

// A connection that says nothing, or stops in the middle of the mark, is HTTP's after its time, to the
// second, and what it says then arrives; one in the middle of a handshake is closed.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listenPipes()
		p := oneport.New(l, oneport.Config{Silence: time.Second, Timeout: 5 * time.Second})
		conns, streams := accepted(p.HTTP()), accepted(p.Streams())
		began := time.Now()
		silent := l.dial("192.0.2.2")
		c := <-conns
		assert.Equal(t, time.Second, time.Since(began))
		assert.True(t, oneport.Silent(c))
		go func() { _, _ = silent.Write([]byte("late")) }()
		got := make([]byte, 4)
		_, err := io.ReadFull(c, got)
		require.NoError(t, err)
		assert.Equal(t, "late", string(got))
		began = time.Now()
		slow := l.dial("192.0.2.2")
		var wait sync.WaitGroup
		wait.Go(func() {
			for _, b := range bytewise(hello[:6]) {
				_, _ = slow.Write(b)
				time.Sleep(900 * time.Millisecond)
			}
		})
		c = <-conns
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.False(t, oneport.Silent(c))
		_, err = io.ReadFull(c, got)
		require.NoError(t, err)
		assert.Equal(t, hello[:4], got)
		wait.Wait()
		_ = slow.Close()
		_ = silent.Close()
		require.NoError(t, p.Close())
		_, more := <-streams
		assert.False(t, more)
	})
}

// Handshakes have their time, too.
func TestSlowHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listenPipes()
		p := oneport.New(l, oneport.Config{TLS: &tls.Config{}, Timeout: 5 * time.Second})
		for _, says := range []string{"", "\x16", "\x16\x03\x01\x00\xff\x01", "GE"} {
			began := time.Now()
			conn := l.dial("192.0.2.2")
			if says != "" {
				_, err := conn.Write([]byte(says))
				require.NoError(t, err)
			}
			_, err := io.ReadAll(conn)
			require.NoError(t, err, "closed")
			assert.Equal(t, 5*time.Second, time.Since(began), "%q", says)
		}
		require.NoError(t, p.Close())
	})
}

// A flood of connections that nobody can tell yet takes no more than its room: others get through, and
// so does its own client when their time is over.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged lines
		l := listenPipes()
		p := oneport.New(l, oneport.Config{MaxSniffed: 8, Silence: time.Minute, Log: slog.New(slog.NewTextHandler(&logged, nil))})
		streams, conns := accepted(p.Streams()), accepted(p.HTTP())
		var flood []net.Conn
		for range 20 {
			flood = append(flood, l.dial("192.0.2.66"))
		}
		synctest.Wait()
		for _, c := range flood[4:] {
			_, err := c.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "beyond its share")
		}
		assert.Equal(t, 1, strings.Count(logged.String(), "too many connections"))
		good := l.dial("192.0.2.2")
		_, err := good.Write(hello)
		require.NoError(t, err)
		_ = (<-streams).Close()
		for range 4 {
			_ = (<-conns).Close()
		}
		again := l.dial("192.0.2.66")
		_, err = again.Write(hello)
		require.NoError(t, err)
		_ = (<-streams).Close()
		require.NoError(t, p.Close())
	})
}

// A server can say which streams are its own; all else is HTTP's, as it came.
func TestOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listenPipes()
		p := oneport.New(l, oneport.Config{Silence: time.Second, Timeout: 5 * time.Second,
			Own: func(_ context.Context, start []byte) (own, more bool) {
				h, ok := frame.Opening(start)
				return ok && h.Session[0] == 1, !ok && frame.Incomplete(start)
			}})
		streams, conns := accepted(p.Streams()), accepted(p.HTTP())
		mine := frame.Hello{Session: [16]byte{1}, Token: make([]byte, frame.TokenLen), Limits: frame.EarlyLimits}.AppendTo(nil)
		broken := bytes.Clone(mine)
		broken[len(broken)-1] ^= 1
		for _, tc := range []struct {
			says []byte
			to   <-chan net.Conn
		}{
			{mine, streams}, {hello, conns}, {broken, conns}, {mine[:len(mine)-1], conns}, {[]byte("HELO\r\n"), conns},
		} {
			conn := l.dial("192.0.2.2")
			go func() {
				for _, b := range bytewise(tc.says) {
					_, _ = conn.Write(b)
				}
			}()
			c := <-tc.to
			got := make([]byte, len(tc.says))
			_, err := io.ReadFull(c, got)
			require.NoError(t, err)
			assert.Equal(t, tc.says, got)
			_ = c.Close()
			_ = conn.Close()
		}
		require.NoError(t, p.Close())
	})
}

// Close ends all that is under way: silent connections, handshakes, those that nobody accepts.
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

// One half goes on when the other is closed.
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

// Errors that pass are waited out; one that does not is that of both halves.
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

// A connection that is reset says so behind what it gave back, in TLS and without.
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
