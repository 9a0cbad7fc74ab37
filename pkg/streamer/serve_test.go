package streamer_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestHandlersOfABurst: of messages that come at once, one-way and requests, as many are handled
// side by side as may be, and never more; the others are handled as soon as some are done, also by
// goroutines that have handled others.
func TestHandlersOfABurst(t *testing.T) {
	const most, messages = 20, 130
	var mu sync.Mutex
	running, peak, handled := 0, 0, 0
	full, done, all := make(chan struct{}), make(chan struct{}), make(chan struct{})
	p := connect(t, pairing{b: streamer.Config{Limits: streamer.Limits{MaxExchanges: most}},
		handlerb: func(ctx context.Context, x *streamer.Exchange) {
			mu.Lock()
			if running++; running == most && peak < most {
				close(full)
			}
			peak = max(peak, running)
			mu.Unlock()
			<-done
			if !x.OneWay() {
				assert.NoError(t, x.Reply(ctx, x.Message()))
			}
			mu.Lock()
			defer mu.Unlock()
			running--
			if handled++; handled == messages {
				close(all)
			}
		}})
	sender := make(chan struct{})
	var replies sync.WaitGroup
	go func() { // it waits for places in flight
		defer close(sender)
		p.a.Together(func() {
			for i := range messages {
				m := streamer.NewMessage(nil, []byte("message"))
				if i%3 > 0 {
					assert.NoError(t, p.a.Lane(uint64(i%4)).Send(t.Context(), m))
					continue
				}
				call, err := p.a.Lane(uint64(i%4)).Begin(t.Context(), m)
				if assert.NoError(t, err) {
					replies.Go(func() {
						r, err := call.Reply(t.Context())
						if assert.NoError(t, err) {
							assert.Equal(t, "message", body(t, r))
						}
					})
				}
			}
		})
	}()
	<-full
	close(done)
	<-sender
	replies.Wait()
	<-all
	assert.Equal(t, most, peak)
	require.NoError(t, p.a.Close())
	require.NoError(t, p.b.Close())
}
