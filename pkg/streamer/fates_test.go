package streamer_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// A lane of one-way messages goes on when the peer did not process one, and lost what it remembers
// by that.
func TestOneWayLanesThatLostMemory(t *testing.T) {
	came := make(chan []byte, 100)
	lacking := []byte("<other><of>1</of><another><kind>2</kind></another></other>")
	p := connect(t, pairing{codera: learning(t, lacking), coderb: learning(t),
		b: streamer.Config{Limits: streamer.Limits{MaxHeld: 1}}, handlerb: func(_ context.Context,
			x *streamer.Exchange) {
			m, err := x.Message().ReadAll(1 << 20)
			if assert.NoError(t, err) {
				came <- m
			}
		}})
	lane := p.a.Lane(1)
	for i := range 5 {
		require.NoError(t, lane.Send(t.Context(), streamer.NewMessage(nil, event(i, "before"))))
		assert.Equal(t, event(i, "before"), <-came)
	}
	lost, err := lane.Post(t.Context(), streamer.NewMessage(nil, lacking))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return lost.Err() != nil }, 10*time.Second, time.Millisecond)
	assert.ErrorIs(t, lost.Err(), &streamer.Error{Code: streamer.Unprocessed})
	for i := range 5 {
		posted, err := lane.Post(t.Context(), streamer.NewMessage(nil, event(i, "behind")))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(came) > 0 || posted.Err() != nil }, 10*time.Second,
			time.Millisecond)
		require.NoError(t, posted.Err())
		assert.Equal(t, event(i, "behind"), <-came)
	}
}

// A reply that is whole is not lost with a request that ends later.
func TestRepliesOutliveTheirRequests(t *testing.T) {
	for name, fail := range map[string]func(p *pair, body *io.PipeWriter){
		"body fails":  func(_ *pair, body *io.PipeWriter) { _ = body.CloseWithError(errors.New("no more")) },
		"stream ends": func(p *pair, _ *io.PipeWriter) { p.b.Abort(frame.CloseGoingAway, "") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				proceed := make(chan struct{})
				p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
					_ = x.Reply(ctx, streamer.NewMessage(nil, []byte("early")))
					<-proceed
				}})
				r, w := io.Pipe()
				call, err := p.a.Lane(1).Open(t.Context(), &streamer.Message{Head: []byte("head"), Body: r})
				require.NoError(t, err)
				_, _ = io.WriteString(w, "the first of it")
				synctest.Wait()
				time.Sleep(time.Second)
				close(proceed)
				fail(p, w)
				synctest.Wait()
				_ = w.Close()
				m, err := call.Reply(t.Context())
				require.NoError(t, err)
				assert.Equal(t, "early", body(t, m))
				_, err = call.Next(t.Context())
				assert.ErrorIs(t, err, &streamer.Error{Code: streamer.NoReply})
				_ = p.a.Close()
				_ = p.b.Close()
			})
		})
	}
}

// A message can be given up while its writer waits for the peer.
func TestWritersThatWaitAreAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, pairing{handlerb: func(ctx context.Context, _ *streamer.Exchange) { <-ctx.Done() }})
		call, w, err := p.a.Lane(1).Start(t.Context(), nil, -1)
		require.NoError(t, err)
		go func() { _, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) }()
		synctest.Wait()
		w.Abort(errors.New("enough"))
		_, err = call.Reply(t.Context())
		assert.ErrorIs(t, err, &streamer.Error{Code: streamer.Aborted})
		end(t, p)
	})
}
