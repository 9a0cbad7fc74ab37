package negotiate_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

func TestUnorderedAndAtMostOnceInOrder(t *testing.T) {
	cfg := config(t)
	cfg.Unordered, cfg.Ordered = true, true
	_, err := negotiate.NewDialer(cfg)
	assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.BadConfig})
	cfg.Assurance = wsrm.AtLeastOnce
	_, err = negotiate.NewDialer(cfg)
	assert.NoError(t, err)
}

// stubborn is a connection that carries octets, whatever the one below can.
type stubborn struct{ net.Conn }

// A session asks for unordered streams, also for those after one that broke; an end that cannot do that has ordered ones.
func TestUnorderedSessions(t *testing.T) {
	for name, able := range map[string]bool{"both can": true, "one can": false} {
		t.Run(name, func(t *testing.T) {
			listener, err := udp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
			require.NoError(t, err)
			_, port, err := net.SplitHostPort(listener.Addr().String())
			require.NoError(t, err)
			streams := make(chan *streamer.Stream, 2)
			r, err := negotiate.NewResponder(negotiate.ResponderConfig{
				Store: newStore(t), Coders: rawCoders, Addresses: map[string]string{"udp": ":" + port},
				WrapConn: func(c net.Conn) net.Conn {
					if able {
						return c
					}
					return stubborn{c}
				},
				OnStream: func(_ negotiate.Facts, s *streamer.Stream) { streams <- s },
				Serve: func(ctx context.Context, _ string, x *streamer.Exchange) {
					body, err := x.Message().ReadAll(100)
					assert.NoError(t, err)
					assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, body)))
				},
			})
			require.NoError(t, err)
			server := httptest.NewServer(r.Handler(http.NotFoundHandler()))
			var wait sync.WaitGroup
			wait.Go(func() { assert.NoError(t, r.ServeStreams(context.Background(), listener)) })
			cfg := config(t)
			cfg.Transports = map[string]streamer.Transport{"udp": udp.Transport{}}
			cfg.Unordered, cfg.Reconnect = true, time.Minute
			session := dial(t, server.URL+"/x", cfg)
			for range 2 {
				_, body := call(t, session, "", "x")
				assert.Equal(t, "x", body)
				there := <-streams
				assert.Equal(t, able, session.Stream().Unordered())
				assert.Equal(t, able, there.Unordered())
				session.Stream().Abort(streamer.CloseGoingAway, "")
				<-there.Done()
			}
			require.NoError(t, session.Close())
			server.Close()
			require.NoError(t, r.Close())
			wait.Wait()
		})
	}
}
