package streamer

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// Counts are right however many frames and bytes there are.
func TestTrafficIsCountedForLong(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	var c trafficCounter
	var want [2]Traffic
	kinds := []FrameKind{frame.KindHello, frame.KindShape, frame.KindData, frame.KindSync, frame.KindAck,
		frame.KindCancel, frame.KindClose, frame.KindIdle}
	for n := range 300_000 {
		kind, octets, messages := FrameKind(frame.KindData), random.IntN(66_000), random.IntN(4)
		if n%1000 < 8 {
			kind, messages = kinds[n%1000], 0
		}
		w := &want[n%5/4]
		count := w.counts()[kindOf(kind)]
		count.Frames++
		count.Octets += int64(octets)
		if n%5 == 4 {
			c.read(kind, octets, messages > 0)
			messages = min(messages, 1)
		} else {
			c.wrote([]wire.Written{{Kind: kind, Octets: octets}}, int32(messages))
		}
		w.Messages += int64(messages)
		if n%50_000 == 0 {
			sent, received := c.both()
			assert.Equal(t, want, [2]Traffic{sent, received})
		}
	}
	sent, received := c.both()
	assert.Equal(t, want, [2]Traffic{sent, received})
	assert.Greater(t, want[0].Octets(), int64(1)<<32)
	assert.Equal(t, want[0].Data.Octets+want[0].Hello.Octets+want[0].Shape.Octets+want[0].Sync.Octets+
		want[0].Ack.Octets+want[0].Cancel.Octets+want[0].Close.Octets+want[0].Other.Octets, want[0].Octets())
}
