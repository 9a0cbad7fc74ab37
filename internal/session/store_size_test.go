package session_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/engines"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// engineSpecs are the engines, by the names that open them in a folder.
func engineSpecs(folder string) map[string]string {
	in := filepath.Join(folder, "store")
	return map[string]string{"memory": "mem:", "bolt": "bolt:" + in, "directory": in}
}

// openEngine opens a store of an engine in a folder of its own.
func openEngine(t testing.TB, engine string) ctxstore.Store {
	t.Helper()
	store, err := engines.Open(t.Context(), engineSpecs(t.TempDir())[engine], engines.Options{MaxBytes: 1 << 30})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// fill puts shapes and sessions into a store, as those of other peers.
func fill(t testing.TB, store ctxstore.Store, shapes, sessions int) {
	t.Helper()
	for i := range shapes {
		body := fmt.Sprintf(`<o:other%d xmlns:o="urn:other"><a>1</a></o:other%d>`, i, i)
		s, err := learn.FromMessage([]byte(envelope(body)))
		require.NoError(t, err)
		_, err = ctxstore.Shapes{Store: store}.Put(t.Context(), s.Octets())
		require.NoError(t, err)
	}
	for range sessions {
		f := negotiate.Facts{
			Session: negotiate.NewSessionID(), Scheme: negotiate.Scheme,
			Representation: negotiate.RepresentationURI("binary"), Transport: negotiate.TransportURI("tcp"),
			Assurance: negotiate.AtMostOnce, Security: negotiate.TransportSecurity, Path: "/other", Address: ":1",
			Origin: "http://other.example:80", Expires: time.Now().Add(time.Hour),
		}
		document, err := session.ContextDocument(f, [16]byte{1})
		require.NoError(t, err)
		_, err = store.Put(t.Context(), f.Session.URI(), document, ctxstore.PutOptions{TTL: time.Hour})
		require.NoError(t, err)
	}
}

// countedConn counts bytes of both directions.
type countedConn struct {
	net.Conn
	n *atomic.Int64
}

// NetConn is the connection, for what it can do beside reading and writing.
func (c countedConn) NetConn() net.Conn { return c.Conn }

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// countedTCP is the transport tcp, whose bytes are counted.
type countedTCP struct {
	tcp.Transport
	n *atomic.Int64
}

func (c countedTCP) Dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := c.Transport.Dial(ctx, addr)
	return countedConn{conn, c.n}, err
}

// counted makes all connections of a client count their bytes, and gives it connections of its own.
func counted(cfg *session.Config) *atomic.Int64 {
	n := new(atomic.Int64)
	cfg.HTTPClient = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return countedConn{conn, n}, err
		},
	}}
	cfg.Transports = map[string]streamer.Transport{"tcp": countedTCP{n: n}}
	return n
}

// request is a request as a client of a camera sends it.
func request(t testing.TB) string {
	return string(shared.Read(t, filepath.Join(shared.Testdata(t, "soap"), "onvif-pullmessages-request.xml")))
}

// callOnce dials, has one reply, and closes.
func callOnce(t testing.TB, url string, cfg session.Config, mode negotiate.Mode, message string) {
	t.Helper()
	s, err := session.Dial(t.Context(), url, cfg)
	require.NoError(t, err)
	m, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(message)))
	require.NoError(t, err)
	got, err := m.ReadAll(1 << 20)
	require.NoError(t, err)
	assert.Equal(t, message, string(got))
	require.Equal(t, mode, s.Agreed().Mode, s.Agreed().Why)
	require.NoError(t, s.Close())
	cfg.HTTPClient.CloseIdleConnections()
}
