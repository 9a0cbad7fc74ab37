package streamer_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestContextsOfHandlers: who waits on the context of a handler, or on one made of it, before or
// after its end, finds out that its exchange is given up, or that the handler has returned.
func TestContextsOfHandlers(t *testing.T) {
	entered, end := make(chan waiting), make(chan struct{})
	handler := func(ctx context.Context, x *streamer.Exchange) {
		w := waiting{ctx: ctx, called: make(chan struct{})}
		assert.NoError(t, ctx.Err())
		if x.Lane() > 0 { // on lane 0 nobody waits before the end
			var stop context.CancelFunc
			w.derived, stop = context.WithCancel(ctx)
			defer stop()
			context.AfterFunc(ctx, func() { close(w.called) })
			assert.NoError(t, w.derived.Err())
		}
		entered <- w
		select {
		case <-end:
		case <-x.Context().Done():
		}
	}
	p := connect(t, pairing{handlerb: handler})
	var calls sync.WaitGroup
	call := func(ctx context.Context, lane uint64, want streamer.Code) waiting {
		calls.Go(func() {
			_, err := p.a.Lane(lane).Call(ctx, streamer.NewMessage(nil, []byte("request")))
			assert.ErrorIs(t, err, &streamer.Error{Code: want})
		})
		return <-entered
	}
	for lane := range uint64(2) {
		w := call(t.Context(), lane, streamer.Failed)
		end <- struct{}{}
		w.isOver(t)
		ctx, giveUp := context.WithCancel(t.Context())
		w = call(ctx, lane, streamer.Aborted)
		giveUp()
		w.isOver(t)
	}
	calls.Wait()
	w := call(t.Context(), 1, streamer.GoingAway)
	p.b.Abort(streamer.CloseGoingAway, "")
	w.isOver(t)
	calls.Wait()
}

type waiting struct {
	ctx, derived context.Context
	called       chan struct{}
}

func (w waiting) isOver(t *testing.T) {
	t.Helper()
	<-w.ctx.Done()
	require.ErrorIs(t, w.ctx.Err(), context.Canceled)
	require.ErrorIs(t, context.Cause(w.ctx), context.Canceled)
	late, stop := context.WithCancel(w.ctx)
	defer stop()
	require.ErrorIs(t, late.Err(), context.Canceled)
	if w.derived != nil {
		<-w.derived.Done()
		<-w.called
	}
}
