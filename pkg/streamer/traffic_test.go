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
		ev := Event{Dir: Sent, Kind: frame.KindData, Octets: random.IntN(66_000), Last: random.IntN(4) > 0}
		if n%5 == 0 {
			ev.Dir = Received
		}
		if n%1000 < 8 {
			ev.Kind, ev.Last = kinds[n%1000], false
		}
		if ev.Dir == Received {
			c.read(ev.Kind, ev.Octets, ev.Last)
		} else {
			ended := int32(0)
			if ev.Last {
				ended = 1
			}
			c.wrote([]wire.Written{{Kind: ev.Kind, Octets: ev.Octets}}, ended)
		}
		w := &want[ev.Dir-Sent]
		count := w.counts()[kindOf(ev.Kind)]
		count.Frames++
		count.Octets += int64(ev.Octets)
		if ev.Last {
			w.Messages++
		}
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
