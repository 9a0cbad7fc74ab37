//go:build !race

package session_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestOneWayMessagesAllocateLittle: a session adds nothing to what its stream allocates for a
// one-way message.
func TestOneWayMessagesAllocateLittle(t *testing.T) {
	came := make(chan struct{}, 1)
	services := startServices(t, func(cfg *responder.Config) {
		cfg.Serve = func(context.Context, string, *streamer.Exchange) { came <- struct{}{} }
	})
	s := dial(t, services.http.URL, config(t))
	send := func() {
		require.NoError(t, s.Send(t.Context(), streamer.NewMessage(nil, []byte("message"))))
		<-came
	}
	send()
	require.NotNil(t, s.Stream())
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, send), 7.0)
}
