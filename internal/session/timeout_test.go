package session_test

import (
	"context"
	"io"
	"net"
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

// silentHTTP answers nothing.
var silentHTTP = answering(func(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
})

// silentNetwork is a transport whose connections answer nothing; where a wait is given they open
// only after it.
type silentNetwork struct {
	t    *testing.T
	wait time.Duration
}

func (s silentNetwork) Dial(ctx context.Context, _ string) (net.Conn, error) {
	select {
	case <-time.After(s.wait):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	context.AfterFunc(s.t.Context(), func() { _ = far.Close() })
	return near, nil
}

func (silentNetwork) Listen(context.Context, string) (net.Listener, error) { return nil, net.ErrClosed }

// The time for negotiation is one time for all paths together, and a context of its caller ends it
// before.
func TestTimeoutIsOneForAllPaths(t *testing.T) {
	for name, within := range map[string]time.Duration{"Timeout": time.Hour, "context": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &inproc.Transport{}
				listener, err := network.Listen(t.Context(), "service")
				require.NoError(t, err)
				h, err := responder.NewHandler(http.HandlerFunc(repeat), responder.Config{
					Store: newStore(t), Addresses: map[string]string{"inproc": "service"},
				})
				require.NoError(t, err)
				served := make(chan error, 1)
				go func() { served <- h.ServeStreams(context.Background(), listener) }()
				cfg := session.Config{
					Mode: negotiate.Auto, HTTPClient: &http.Client{Transport: inProcess{h}}, Store: newStore(t),
					Transports: map[string]streamer.Transport{"inproc": network}, RequireHHFR: true,
					Timeout: 10 * time.Second,
				}
				s := dial(t, "http://service.example/echo", cfg)
				require.True(t, s.Agreed().HHFR)
				require.NoError(t, s.Close())
				require.NoError(t, h.Close())
				require.NoError(t, <-served)

				// The session that was met takes 8 s to be found gone.
				cfg.HTTPClient = &http.Client{Transport: silentHTTP}
				cfg.Transports["inproc"] = silentNetwork{t, time.Hour}
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				began := time.Now()
				_, err = session.Dial(ctx, "http://service.example/echo", cfg)
				assert.Equal(t, min(cfg.Timeout, within), time.Since(began))
				if within < cfg.Timeout {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				require.ErrorContains(t, err, "not within 10s")
			})
		})
	}
}

// It is so also for a stream that the answer to the first call has named: the request that asks for
// one beside it has half of the time.
func TestTimeoutOfWhatAnAnswerNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := responder.NewHandler(http.HandlerFunc(repeat), responder.Config{
			Store: newStore(t), Addresses: map[string]string{"tcp": ":1"},
		})
		require.NoError(t, err)
		var asked []time.Duration
		began := time.Now()
		s := dial(t, "http://service.example/echo", session.Config{
			Mode: negotiate.FirstCall, Store: newStore(t), Timeout: 10 * time.Second,
			Transports: map[string]streamer.Transport{"tcp": silentNetwork{t, 0}},
			HTTPClient: &http.Client{Transport: answering(func(req *http.Request) (*http.Response, error) {
				if req.Method == http.MethodOptions {
					asked = append(asked, time.Since(began))
					return silentHTTP(req)
				}
				req = req.Clone(req.Context())
				for name, values := range req.Header { // as read from a connection
					req.Header.Set(name, values[0])
				}
				return inProcess{h}.RoundTrip(req)
			})},
		})
		say(t, s, "the first call")
		require.True(t, s.Agreed().Undecided, s.Agreed().Why)
		time.Sleep(10*time.Second + time.Nanosecond)
		synctest.Wait()
		assert.False(t, s.Agreed().Undecided)
		assert.Contains(t, s.Agreed().Why, "not within 5s")
		assert.Equal(t, []time.Duration{5 * time.Second}, asked)
		say(t, s, "all the same")
		require.NoError(t, s.Close())
		require.NoError(t, h.Close())
	})
}
