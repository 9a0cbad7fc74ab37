//go:build !race

package streamer_test

import (
	"context"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// Who reads a body by its length, and does not ask for its end, gives its memory back as well.
func TestBodiesReadByTheirLengthGiveTheirMemoryBack(t *testing.T) {
	const size = 16 << 10
	content, got := make([]byte, size), make([]byte, size)
	p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
		assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, content)))
	}})
	call := func() {
		reply, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, nil))
		require.NoError(t, err)
		_, err = io.ReadFull(reply.Body, got)
		require.NoError(t, err)
	}
	const calls = 200
	var before, after runtime.MemStats
	for i := range 2 * calls {
		if i == calls {
			runtime.ReadMemStats(&before)
		}
		call()
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, (after.TotalAlloc-before.TotalAlloc)/calls, uint64(size/2))
}
