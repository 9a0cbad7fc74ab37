package bench_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/shared"
)

// countedListener counts what arrives at a server, and what leaves it.
type countedListener struct {
	net.Listener
	in, out atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedEnd{Conn: c, of: l}, nil
}

type countedEnd struct {
	net.Conn
	of *countedListener
}

func (c *countedEnd) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.of.in.Add(int64(n))
	return n, err
}

func (c *countedEnd) Write(b []byte) (int, error) {
	c.of.out.Add(int64(len(b)))
	return c.Conn.Write(b)
}

// startPeer starts what hhfr serve has of services.
func startPeer(t *testing.T) (at *url.URL, octets *countedListener) {
	services, err := peer.NewServices(peer.Concat(), peer.Sum(), peer.Echo())
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	octets = &countedListener{Listener: l}
	p, err := peer.Start(peer.Config{Services: services, HTTP: octets})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return &url.URL{Scheme: "http", Host: l.Addr().String()}, octets
}

// What a session counts is what arrives at the server, and what leaves it. A stream says that it
// ends after its session was measured.
func TestPeerOctets(t *testing.T) {
	const ending = 100
	for _, way := range []bench.SessionWay{bench.Explicit, bench.FirstCall, bench.FirstCallQueued, bench.SOAPNew,
		bench.SOAPKept, bench.SOAPKeptGzip} {
		at, octets := startPeer(t)
		c, err := bench.ToPeer(t.Context(), at, way, 5)
		require.NoError(t, err, way)
		assert.True(t, c.Good())
		assert.Positive(t, c.Millis)
		assert.GreaterOrEqual(t, octets.in.Load(), c.Sent, way)
		assert.LessOrEqual(t, octets.in.Load(), c.Sent+ending, way)
		assert.GreaterOrEqual(t, octets.out.Load(), c.Received, way)
		assert.LessOrEqual(t, octets.out.Load(), c.Received+ending, way)
		if way == bench.SOAPNew || way == bench.SOAPKept {
			assert.Equal(t, octets.in.Load(), c.Sent, way)
			assert.Equal(t, octets.out.Load(), c.Received, way)
		}
	}
}

// Sessions to a peer, by HTTP/2 too, each three times; the URL may name a service.
func TestSessionsToAPeer(t *testing.T) {
	at, _ := startPeer(t)
	at.Path = "/sum"
	costs := 0
	r, err := bench.Session(t.Context(), bench.SessionConfig{Peer: at, Services: []string{"sum"}, Sizes: []int{5, 10},
		Counts: []int{1, 2}, Repeat: 3, Overheads: true, SweepSize: true,
		EachOverhead: func(bench.Overhead) error { costs++; return nil }})
	require.NoError(t, err)
	require.Len(t, r.Cells, len(bench.UsualWays)*2*2*3)
	require.Len(t, r.LeftOut, 1)
	assert.Equal(t, "Oa", r.LeftOut[0].What)
	assert.Contains(t, r.LeftOut[0].Why, "hhfr serve --context")
	assert.Len(t, r.Overheads, 2*3)
	assert.Equal(t, len(r.Overheads), costs)
	assert.Equal(t, at.String(), r.Peer)
	assert.Empty(t, r.Link)
	assert.NotEmpty(t, r.Sweeps)
	for _, c := range r.Cells {
		assert.Zero(t, c.Expected)
		assert.Positive(t, c.Sent)
		assert.Equal(t, 1.0, c.Speed)
		assert.Contains(t, []int{1, 2, 3}, c.Repeat)
	}
	assert.Equal(t, 5440.0, r.Cells[0].Paper)
}

// Messages of files are sent in turn, and come back.
func TestMessagesOfFiles(t *testing.T) {
	at, _ := startPeer(t)
	var messages [][]byte
	for _, name := range []string{"cwmp-inform.xml", "onvif-pullmessages-request.xml"} {
		messages = append(messages, shared.Read(t, shared.Testdata(t, "soap", name)))
	}
	r, err := bench.Session(t.Context(), bench.SessionConfig{Peer: at, Messages: messages, Counts: []int{3},
		Ways: []bench.SessionWay{bench.Met, bench.SOAPKept}})
	require.NoError(t, err)
	require.Len(t, r.Cells, 2)
	assert.Equal(t, bench.FileService, r.Cells[0].Service)
	assert.Equal(t, len(messages), r.Cells[0].Size)
}

// What is no hhfr serve is told before anything is measured.
func TestSessionsToNoPeer(t *testing.T) {
	measured := func(bench.Cell) error { t.Error("measured"); return nil }
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for at, why := range map[string]string{
		plain.URL: "plain SOAP instead of hhfr", "http://" + l.Addr().String(): "refused",
	} {
		u, err := url.Parse(at)
		require.NoError(t, err)
		r, err := bench.Session(t.Context(), bench.SessionConfig{Peer: u, Each: measured})
		require.ErrorIs(t, err, bench.ErrPeer)
		assert.ErrorContains(t, err, why)
		assert.Nil(t, r)
	}
	for _, cfg := range []bench.SessionConfig{
		{Peer: &url.URL{Scheme: "http", Host: "127.0.0.1:9"}, Ways: []bench.SessionWay{bench.MetTLS}},
		{Repeat: -1}, {Services: []string{bench.FileService}},
	} {
		_, err := bench.Session(t.Context(), cfg)
		require.ErrorIs(t, err, bench.ErrConfig)
	}
}

func TestSessionsToAPeerInterrupted(t *testing.T) {
	at, _ := startPeer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := bench.Session(ctx, bench.SessionConfig{Peer: at, Repeat: 1000, Each: func(bench.Cell) error {
		cancel()
		return nil
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, r.Cells, 1)
}
