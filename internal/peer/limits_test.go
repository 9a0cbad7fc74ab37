package peer_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// pipes is a listener for a bubble of synctest: its connections lie in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

// inBubble runs f with a server on such a listener.
func inBubble(t *testing.T, f func(t *testing.T, l *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		l, store := newPipes(), memory.New(memory.Config{})
		services, err := peer.NewServices(peer.Echo(), peer.Concat())
		require.NoError(t, err)
		s, err := peer.Start(peer.Config{HTTP: l, Services: services, Store: store})
		require.NoError(t, err)
		defer func() {
			assert.NoError(t, s.Close())
			assert.NoError(t, store.Close())
		}()
		f(t, l)
	})
}

// A phone on a link of 14.4 kbit/s, with an outage of a minute and a half now and then, gets its 22
// MB through in hours.
func TestSlowLinksAreNotCut(t *testing.T) {
	const octets, step = 22 << 20, 1440
	inBubble(t, func(t *testing.T, l *pipes) {
		conn := l.dial()
		var wait sync.WaitGroup
		defer wait.Wait()
		defer conn.Close()
		began := time.Now()
		wait.Go(func() {
			_, _ = fmt.Fprintf(conn, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", octets)
			for sent := 0; sent < octets; sent += step {
				time.Sleep(step * 8 * time.Second / 14400)
				if sent%(step*4000) == 0 {
					time.Sleep(90 * time.Second)
				}
				if _, err := conn.Write(bytes.Repeat([]byte("x"), min(step, octets-sent))); err != nil {
					return
				}
			}
		})
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		assert.EqualValues(t, octets, n)
		assert.Greater(t, time.Since(began), 3*time.Hour)
	})
}

// Bodies that drip keep no connection, whoever reads them: a service as it goes, one that waits for
// the whole, nobody, or who looks for an offer. The connection has been used before.
func TestDrippingBodiesAreCut(t *testing.T) {
	const start = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'>"
	for name, c := range map[string]struct{ path, start, reply string }{
		"read as it goes":  {"/echo", strings.Repeat("x", 5000), "HTTP/1.1 200 OK"},
		"read as a whole":  {"/concat", start + strings.Repeat(" ", 5000), "HTTP/1.1 408 "},
		"by nobody":        {"/nowhere", "<x>", "HTTP/1.1 404 "},
		"for an offer":     {"/concat", "<x", "HTTP/1.1 408 "},
		"from the start":   {"/concat", "", "HTTP/1.1 408 "},
		"refused at once":  {"/concat", "<x>", "HTTP/1.1 500 "},
		"method not known": {"/concat", "", "HTTP/1.1 405 "},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *pipes) {
				conn := l.dial()
				var wait sync.WaitGroup
				defer wait.Wait()
				defer conn.Close()
				method := "POST"
				if name == "method not known" {
					method = "PUT"
				}
				const request = "%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s"
				wait.Go(func() {
					both := fmt.Sprintf(request+request, "POST", "/echo", 3, "abc", method, c.path, 1<<20, c.start)
					_, err := io.WriteString(conn, both)
					for err == nil {
						time.Sleep(3 * time.Second)
						_, err = io.WriteString(conn, " ")
					}
				})
				in := bufio.NewReader(conn)
				resp, err := http.ReadResponse(in, nil)
				require.NoError(t, err)
				_, _ = io.Copy(io.Discard, resp.Body)
				began := time.Now()
				all, _ := io.ReadAll(in)
				assert.Less(t, time.Since(began), 10*time.Minute)
				assert.True(t, strings.HasPrefix(string(all), c.reply), "%.60q", all)
			})
		})
	}
}

// Who asks for much and takes nothing keeps no connection either.
func TestRepliesThatNobodyTakesAreCut(t *testing.T) {
	inBubble(t, func(t *testing.T, l *pipes) {
		conn := l.dial()
		defer conn.Close()
		began := time.Now()
		_, err := fmt.Fprintf(conn, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 1<<20)
		require.NoError(t, err)
		for err == nil {
			_, err = conn.Write(bytes.Repeat([]byte("x"), 1000))
		}
		assert.Less(t, time.Since(began), 10*time.Minute)
	})
}

// One client address has no more than its share of HTTP connections: it gets status 503 for others,
// a warning tells once.
func TestHTTPConnectionsAreBounded(t *testing.T) {
	var log bytes.Buffer
	limits := peer.Limits{MaxConns: 8, MaxPerPeer: 3}
	s := startWith(t, func(c *peer.Config) {
		c.Limits, c.Log = limits, slog.New(slog.NewTextHandler(&log, nil))
	}, peer.Echo())
	connect := func() net.Conn {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addrs()["http"].String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	served := func(c net.Conn) bool {
		_, _ = io.WriteString(c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
		reply, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		if reply.StatusCode != http.StatusOK {
			require.NoError(t, c.Close())
			return false
		}
		return true
	}
	var held []net.Conn
	for range limits.MaxPerPeer {
		held = append(held, connect())
		require.True(t, served(held[len(held)-1]))
	}
	for range 50 {
		require.False(t, served(connect()))
	}
	require.NoError(t, held[0].Close())
	require.Eventually(t, func() bool { return served(connect()) }, time.Minute, 10*time.Millisecond)
	require.NoError(t, s.Close())
	assert.Equal(t, 1, strings.Count(log.String(), "too many connections"), log.String())
}
