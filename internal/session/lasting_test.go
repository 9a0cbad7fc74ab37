package session_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// A session lasts while its stream is open, at both ends, also when both are started anew after
// many lifetimes; and ends some time after the stream.
func TestSessionsLastWhileTheirStreamsAreOpen(t *testing.T) {
	for name, lifetime := range map[string]time.Duration{"an hour": time.Hour, "ten seconds": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far, near := newStore(t), newStore(t)
				run := func(talk func(s *session.Session)) negotiate.Agreed {
					network := &inproc.Transport{}
					listener, err := network.Listen(t.Context(), "service")
					require.NoError(t, err)
					h, err := responder.NewHandler(http.HandlerFunc(repeat), responder.Config{
						Store: far, Addresses: map[string]string{"inproc": "service"},
					})
					require.NoError(t, err)
					served := make(chan error, 1)
					go func() { served <- h.ServeStreams(context.Background(), listener) }()
					cfg := session.Config{
						Mode: negotiate.Auto, HTTPClient: &http.Client{Transport: inProcess{h}}, Store: near,
						Transports: map[string]streamer.Transport{"inproc": network},
					}
					if lifetime != time.Hour { // an offer for another one does not join what was met
						cfg.Lifetime = lifetime
					}
					s := dial(t, "http://service.example/echo", cfg)
					require.True(t, s.Agreed().HHFR, s.Agreed().Why)
					say(t, s, "hello")
					talk(s)
					require.NoError(t, s.Close())
					require.NoError(t, h.Close())
					require.NoError(t, <-served)
					return s.Agreed()
				}
				id := run(func(s *session.Session) {
					time.Sleep(20*lifetime + lifetime/5)
					say(t, s, "still there")
					time.Sleep(20*lifetime + lifetime/3)
				}).Facts.Session
				_, err := far.Get(t.Context(), id.URI())
				require.NoError(t, err)
				_, err = near.Get(t.Context(), id.URI())
				require.NoError(t, err, "recordings of it can be decoded")

				again := run(func(*session.Session) {})
				assert.Equal(t, negotiate.Met, again.Mode)
				assert.Equal(t, id, again.Facts.Session)

				time.Sleep(lifetime + time.Second)
				_, err = far.Get(t.Context(), id.URI())
				assert.Error(t, err)
				anew := run(func(*session.Session) {})
				assert.NotEqual(t, negotiate.Met, anew.Mode)
				assert.NotEqual(t, id, anew.Facts.Session)
			})
		})
	}
}
