package streamer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
)

// A piece that cost more than was reckoned may be what takes the last credit: behind a peer's close
// frame the rest of its message is dropped. What can still go is not.
func TestChargesBehindTheLastCredit(t *testing.T) {
	q := newQueue(&Config{QueueBytes: 1 << 20}, frame.Limits{Window: 64 << 10})
	q.wake = func(bool) {} // no writer
	begin := func() *outbound {
		out := newOutbound(1, true)
		require.NoError(t, q.admit(out))
		q.mu.Lock()
		out.begun, out.message.OneWay = true, true
		q.mu.Unlock()
		require.NoError(t, q.put(t.Context(), out, &outboundPiece{last: true}))
		return out
	}
	starves, goes := begin(), begin()
	q.deafen(nil)
	q.charge(starves, 128<<10)
	q.charge(goes, 1<<10)
	require.NotNil(t, starves.dropped)
	assert.Equal(t, FateUnknown, starves.dropped.Code)
	assert.Nil(t, goes.dropped)
	assert.Equal(t, []*outbound{goes}, q.live)
}
