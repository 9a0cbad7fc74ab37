package session_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// heard is a transport that keeps what was written on each connection.
type heard struct {
	tcp.Transport
	mu   sync.Mutex
	sent []*heardConn
}

type heardConn struct {
	net.Conn
	mu  sync.Mutex
	all []byte
}

func (c *heardConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.all = append(c.all, p...)
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func (h *heard) Dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := h.Transport.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &heardConn{Conn: conn}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent = append(h.sent, c)
	return c, nil
}

func (h *heard) last() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.sent[len(h.sent)-1]
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]byte(nil), c.all...)
}

// refusalOf sends bytes over a connection of its own, and returns the hello that comes back, with
// the reason.
func refusalOf(t *testing.T, addr string, octets []byte) (frame.Hello, frame.Close) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write(octets)
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	all, err := io.ReadAll(conn)
	require.NoError(t, err)
	hello, n, err := frame.Parse(all, 0, 0)
	require.NoError(t, err)
	last, _, err := frame.Parse(all[n:], 0, 0)
	require.NoError(t, err)
	return hello.(frame.Hello), last.(frame.Close)
}

// A first flight that is replayed as a whole is refused, and its message not processed; so is a
// forged token.
func TestFirstFlightsAreTakenOnce(t *testing.T) {
	var processed atomic.Int64
	d := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		processed.Add(1)
		repeat(w, r)
	}), false, nil)
	cfg := d.config(negotiate.Auto)
	h := &heard{}
	cfg.Transports = map[string]streamer.Transport{"tcp": h}
	for range 2 { // the second session is met again
		s := dial(t, d.url, cfg)
		say(t, s, "x")
		require.NoError(t, s.Close())
	}
	require.Equal(t, int64(2), processed.Load())
	flight := h.last()
	addr := strings.TrimSuffix(strings.TrimPrefix(d.url, "http://"), "/soap")
	hello, n, err := frame.Parse(flight, 0, 0)
	require.NoError(t, err)
	forged := hello.(frame.Hello)
	forged.Token = append([]byte(nil), forged.Token...)
	forged.Token[0]++
	for name, octets := range map[string][]byte{"again": flight,
		"forged": append(forged.AppendTo(nil), flight[n:]...)} {
		back, why := refusalOf(t, addr, octets)
		assert.Zero(t, back.Representation, name)
		assert.Empty(t, back.Token, name)
		assert.Equal(t, frame.CloseUnknownSession, why.Code, name)
	}
	assert.Equal(t, int64(2), processed.Load())
	s := dial(t, d.url, cfg) // the session is joined all the same, by the owner of its token
	say(t, s, "y")
	assert.Equal(t, negotiate.Met, s.Agreed().Mode)
	require.NoError(t, s.Close())
}

// One peer that opens sessions and does not continue, by upgrades without a hello and by first
// contacts that stop, keeps no other from its session, and gets no more than its share.
func TestHalfAgreedSessionsOfOnePeer(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), false, func(c *responder.Config) { c.MaxSessions, c.MaxPerPeer = 16, 8 })
	addr := strings.TrimSuffix(strings.TrimPrefix(d.url, "http://"), "/soap")
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	var conns []net.Conn
	upgraded := 0
	for i := range 40 {
		conn, err := from.DialContext(t.Context(), "tcp", addr)
		require.NoError(t, err)
		conns = append(conns, conn)
		if i%2 == 0 {
			_, err = fmt.Fprintf(conn,
				"OPTIONS /soap HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: hhfr/1\r\nHHFR: 1\r\n\r\n", addr)
			require.NoError(t, err)
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(eventually)))
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			if resp.StatusCode == http.StatusSwitchingProtocols {
				upgraded++
			}
			continue
		}
		h := frame.Hello{
			Session:        [16]byte{byte(i)},
			Target:         "http://" + addr + "/soap",
			Representation: 1,
			Stages:         streamer.AllStages,
			Limits:         streamer.EarlyLimits,
		}
		_, err = conn.Write(h.AppendTo(nil))
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, upgraded, 8)
	assert.Positive(t, upgraded)
	s := dial(t, d.url, d.config(negotiate.Auto))
	say(t, s, "first")
	say(t, s, "second")
	assert.True(t, s.Agreed().HHFR, s.Agreed().Why)
	require.NoError(t, s.Close())
	for _, c := range conns {
		_ = c.Close()
	}
}

// The fields of a request that asks take at most 50 bytes.
func TestFieldsAreShort(t *testing.T) {
	var mu sync.Mutex
	var heads [2]int
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			head := make([]byte, 4096)
			n, _ := conn.Read(head)
			end := strings.Index(string(head[:n]), "\r\n\r\n")
			mu.Lock()
			if strings.Contains(string(head[:n]), "Upgrade") {
				heads[1] = end
			} else {
				heads[0] = end
			}
			mu.Unlock()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			_ = conn.Close()
		}
	})
	for _, mode := range []negotiate.Mode{negotiate.FirstCall, negotiate.Met} {
		s := dial(t, "http://"+l.Addr().String(),
			session.Config{Mode: mode, HTTPClient: &http.Client{Transport: &http.Transport{}}, RememberFor: -1})
		_, err := s.Call(t.Context(), message("<e/>"))
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	require.NoError(t, l.Close())
	wait.Wait()
	assert.Positive(t, heads[0])
	assert.LessOrEqual(t, heads[1]-heads[0], 50)
	assert.Greater(t, heads[1]-heads[0], 40)
}

// hush is a transport whose connections receive nothing until allowed.
type hush struct {
	heard
	may chan struct{}
}

func (s *hush) Dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := s.heard.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &hushConn{conn, s.may}, nil
}

type hushConn struct {
	net.Conn
	may chan struct{}
}

func (c *hushConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	<-c.may
	return n, err
}

// A sequence continues in the first flight of the next session: hello and its messages leave before
// the peer has sent anything.
func TestSequencesGoOnInOneFlight(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), false, nil)
	cfg := d.config(negotiate.Auto)
	cfg.Assurance, cfg.Reconnect = wsrm.AtLeastOnce, eventually
	quiet := &hush{may: make(chan struct{})}
	close(quiet.may)
	cfg.Transports = map[string]streamer.Transport{"tcp": quiet}
	s := dial(t, d.url, cfg)
	say(t, s, "by an offer")
	assert.Equal(t, negotiate.Explicit, s.Agreed().Mode)
	require.NoError(t, s.Close()) // and not finished: the sequence continues
	quiet.may = make(chan struct{})
	s = dial(t, d.url, cfg)
	assert.Equal(t, negotiate.Met, s.Agreed().Mode)
	p, err := s.Begin(t.Context(), message("<e>goes on</e>"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		flight := quiet.last()
		_, n, err := frame.Parse(flight, 0, 0)
		for err == nil && n > 0 && n < len(flight) {
			flight = flight[n:]
			if flight[0] >= 0x80 {
				return true // data
			}
			_, n, err = frame.Parse(flight, 0, 0)
		}
		return false
	}, eventually, tick)
	close(quiet.may)
	m, err := p.Reply(t.Context())
	require.NoError(t, err)
	got, err := m.ReadAll(100)
	require.NoError(t, err)
	assert.Equal(t, "<e>goes on</e>", string(got))
	require.NoError(t, s.Close())
}
