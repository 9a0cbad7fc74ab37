package streamer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestDetached: an exchange that was detached goes on without its handler: its context lives, its
// reply counts, and a close in order waits for it. One that is released without a reply has failed.
func TestDetached(t *testing.T) {
	for name, replies := range map[string]bool{"replies": true, "does not reply": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
					request := body(t, x.Message())
					x.Detach()
					go func() {
						defer x.Release()
						time.Sleep(time.Second) // the handler has returned long ago
						assert.NoError(t, ctx.Err())
						if replies {
							assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, []byte(request))))
						}
					}()
				}})
				closed := make(chan error, 1)
				pending, err := p.a.Lane(0).Begin(t.Context(), streamer.NewMessage(nil, []byte("request")))
				require.NoError(t, err)
				synctest.Wait()
				go func() { closed <- p.b.Close() }()
				r, err := pending.Reply(t.Context())
				if replies {
					require.NoError(t, err)
					assert.Equal(t, "request", body(t, r))
				} else {
					require.ErrorIs(t, err, &streamer.Error{Code: streamer.Failed})
				}
				require.NoError(t, <-closed)
			})
		})
	}
}

// TestDetachedEndsWithItsStream: a stream that breaks ends the context of an exchange that was
// detached, and is over when that is released.
func TestDetachedEndsWithItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
			x.Detach()
			go func() {
				defer x.Release()
				<-ctx.Done()
				close(ended)
				assert.Error(t, x.Reply(ctx, streamer.NewMessage(nil, nil)))
			}()
		}})
		pending, err := p.a.Lane(0).Begin(t.Context(), streamer.NewMessage(nil, []byte("request")))
		require.NoError(t, err)
		synctest.Wait()
		p.b.Abort(streamer.CloseGoingAway, "")
		<-ended
		_, err = pending.Reply(t.Context())
		require.Error(t, err)
	})
}

// TestNotify: who waits for a reply is told once when there is one, or when there will be none, at
// once if that is known.
func TestNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
			if x.Lane() == 0 {
				<-answer
				echo(ctx, x)
			}
		}})
		told := 0
		begin := func(lane uint64) *streamer.Pending {
			pending, err := p.a.Lane(lane).Begin(t.Context(), streamer.NewMessage(nil, []byte("request")))
			require.NoError(t, err)
			return pending
		}
		pending := begin(0)
		pending.Notify(func() { told++ }, nil)
		synctest.Wait()
		assert.Zero(t, told)
		assert.False(t, pending.Ready())
		close(answer)
		synctest.Wait()
		assert.Equal(t, 1, told)
		assert.True(t, pending.Ready())
		pending.Notify(func() { told++ }, nil)
		assert.Equal(t, 2, told, "the reply is there")
		r, err := pending.Reply(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "request", body(t, r))
		synctest.Wait()
		assert.Equal(t, 2, told)
		assert.False(t, pending.Ready(), "the reply was taken")

		none := begin(1)
		none.Notify(func() { told++ }, nil)
		synctest.Wait()
		assert.Equal(t, 3, told, "the handler did not reply")
		assert.True(t, none.Ready())
		_, err = none.Reply(t.Context())
		require.ErrorIs(t, err, &streamer.Error{Code: streamer.Failed})
	})
}
