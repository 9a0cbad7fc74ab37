package proxy_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/clock"
)

// shifted is the machine's clock, which a test sets forward.
type shifted struct {
	clock.Clock
	by atomic.Int64
}

func (s *shifted) Now() time.Time                  { return s.Clock.Now().Add(time.Duration(s.by.Load())) }
func (s *shifted) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// TestSlowAttemptIsTold: while an attempt to open a stream hangs, as behind a firewall that drops
// packets, calls go without one. That is logged once, by the first call that comes when the attempt
// has taken long, and not before.
func TestSlowAttemptIsTold(t *testing.T) {
	hangs, ended := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	o := startOrigin(t, "127.0.0.1:0", server(func(h *http1.Head, entity []byte) []byte {
		if string(h.Method()) == http.MethodOptions {
			if !first.Swap(true) {
				close(hangs)
			}
			<-ended
		}
		return echoReply(h, entity)
	}))
	c := &shifted{Clock: clock.Real()}
	var said warnings
	near := startOffering(t, "127.0.0.1:0", o.url(), func(cfg *settings) {
		cfg.Clock, cfg.Timeout = c, ages
		cfg.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	<-hangs
	use(t, near)
	assert.Equal(t, []string{""}, said.lines())
	c.by.Store(int64(4 * time.Second))
	use(t, near)
	close(ended)
	require.NoError(t, near.Close())
	lines := said.lines()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "no stream yet; the attempt takes long")
}

// TestUpstreamIsToldOnce: that an upstream cannot be connected to is logged with the first call
// that it concerns, and with none after that; so is that it answers again.
func TestUpstreamIsToldOnce(t *testing.T) {
	addr := shared.Addr(t)
	var said warnings
	to := &url.URL{Scheme: "http", Host: addr, Path: "/service"}
	far := startProxy(t, "127.0.0.1:0", to, func(cfg *settings) {
		cfg.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	for range 5 {
		client := connect(t, far.url())
		client.say(post("", envelope))
		client.hear("was not sent\n")
	}
	lines := said.lines()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "msg=upstream")
	startOrigin(t, addr, server(echoReply))
	use(t, far)
	lines = said.lines()
	require.Len(t, lines, 2)
	assert.Contains(t, lines[1], "the upstream answers again")
	assert.True(t, strings.Contains(lines[1], addr), lines[1])
}
