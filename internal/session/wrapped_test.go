package session_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hhfr/hhfr/internal/responder"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// metered is a wrapper as people write them: it embeds the connection, and has nothing else of it.
type metered struct {
	net.Conn
	writes *atomic.Int64
}

func (c metered) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// cable is a path of datagrams that can be cut.
type cable struct {
	net.PacketConn
	cut *atomic.Bool
}

func (c cable) WriteTo(p []byte, to net.Addr) (int, error) {
	if c.cut.Load() {
		return len(p), nil
	}
	return c.PacketConn.WriteTo(p, to)
}

func (c cable) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(p)
		if err != nil || !c.cut.Load() {
			return n, from, err
		}
	}
}

// A connection that an application wraps is still told that a reply is awaited: a peer that falls
// silent over UDP is found out soon, and not after the ten minutes of an idle connection.
func TestWrappedConnectionsKeepWhatTheyCan(t *testing.T) {
	over := udp.Config{Linger: 10 * time.Millisecond}
	l, err := udp.Transport{Config: over}.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	reached, accepted := make(chan struct{}), make(chan net.Conn, 1)
	s := startServices(t, func(c *responder.Config) {
		c.Addresses = map[string]string{"udp": ":" + port}
		c.Serve = func(ctx context.Context, path string, x *streamer.Exchange) {
			if path == "/silent" && x.Number() == 1 {
				_, _ = x.Message().ReadAll(1 << 20)
				close(reached)
				<-ctx.Done()
				return
			}
			_ = x.Reply(ctx, x.Message())
		}
		c.WrapConn = func(c net.Conn) net.Conn {
			accepted <- c
			return metered{c, new(atomic.Int64)}
		}
	})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.ServeStreams(context.Background(), l)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-served
	})
	var cut atomic.Bool
	var writes atomic.Int64
	over.Unanswered = 400 * time.Millisecond
	cfg := config(t)
	cfg.Transports = map[string]streamer.Transport{"udp": udp.Transport{Config: over,
		Through: func(c net.PacketConn, _ net.Addr) (net.PacketConn, error) { return cable{c, &cut}, nil }}}
	cfg.RequireHHFR = true
	var told net.Conn
	cfg.WrapConn = func(c net.Conn) net.Conn { return metered{c, &writes} }
	cfg.OnSession = func(_ negotiate.Facts, c net.Conn) { told = c }
	session := dial(t, s.http.URL+"/silent", cfg)
	assert.IsType(t, metered{}, told, "the connection as wrapped")

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	failed := make(chan error)
	go func() {
		_, err := session.Call(ctx, streamer.NewMessage(nil, []byte("never answered")))
		failed <- err
	}()
	<-reached
	call(t, session, "", "answered: with it all before has arrived")
	cut.Store(true)
	require.ErrorIs(t, <-failed, &negotiate.Error{Code: negotiate.FateUnknown})
	assert.NoError(t, ctx.Err(), "found out by the silence")
	assert.Positive(t, writes.Load())
	_ = (<-accepted).Close() // its peer will not say that it is done
}
