//go:build !race

package streamer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestMessagesAllocateLittle: but for what the application makes, and is given, of a message, both
// ends together allocate less for it than there are steps on its way.
func TestMessagesAllocateLittle(t *testing.T) {
	came := make(chan struct{}, 1)
	p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
		echo(ctx, x)
		if x.OneWay() {
			came <- struct{}{}
		}
	}})
	lane, payload := p.a.Lane(0), make([]byte, 40)
	call := func() {
		r, err := lane.Call(t.Context(), streamer.NewMessage(nil, payload))
		require.NoError(t, err)
		_, err = r.ReadAll(100)
		require.NoError(t, err)
	}
	send := func() {
		require.NoError(t, lane.Send(t.Context(), streamer.NewMessage(nil, payload)))
		<-came
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, call), 11.0, "a call")
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, send), 4.0, "a one-way message")
}
