package streamer_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// severed is a socket whose link can be cut; it counts what it is given to send.
type severed struct {
	net.PacketConn
	cut  *atomic.Bool
	sent *atomic.Int64
}

func (s severed) WriteTo(b []byte, to net.Addr) (int, error) {
	s.sent.Add(1)
	if s.cut.Load() {
		return len(b), nil
	}
	return s.PacketConn.WriteTo(b, to)
}

// TestLinkDiesInMidCall: over datagrams, a call whose reply cannot come any more ends as soon as
// over TCP, although the request arrived whole; and a stream on which no call waits asks rarely
// whether the peer is there.
func TestLinkDiesInMidCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := link.ParseProfile("gprs")
		require.NoError(t, err)
		near, far, err := link.Packets(nil, p)
		require.NoError(t, err)
		var cut atomic.Bool
		var sent atomic.Int64
		l, err := udp.Listen(severed{far, &cut, &sent}, udp.Config{})
		require.NoError(t, err)
		here, err := udp.Dial(t.Context(), severed{near, &cut, &sent}, far.LocalAddr(), udp.Config{})
		require.NoError(t, err)
		there, err := l.Accept()
		require.NoError(t, err)
		served := make(chan struct{}, 1)
		slow := func(ctx context.Context, x *streamer.Exchange) {
			served <- struct{}{}
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
				assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, []byte("late"))))
			}
		}
		s := connectOver(t, pairing{handlerb: slow}, here, there)
		call := func() error {
			r, err := s.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("x")))
			if err == nil {
				assert.Equal(t, "late", body(t, r))
			}
			return err
		}
		require.NoError(t, call(), "a handler may take its time")
		<-served

		before := sent.Load()
		time.Sleep(time.Hour)
		assert.LessOrEqual(t, sent.Load()-before, int64(40), "datagrams of both ends in an idle hour")

		ended := make(chan error, 1)
		go func() { ended <- call() }()
		<-served
		time.Sleep(10 * time.Second)
		cut.Store(true)
		began := time.Now()
		assert.ErrorIs(t, <-ended, &streamer.Error{Code: streamer.FateUnknown})
		assert.LessOrEqual(t, time.Since(began), 150*time.Second)
		require.NoError(t, l.Close())
	})
}
