package window_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/window"
)

// A sender that is done with more than the receiver has it pass over that, up to the last number
// there is; nothing is delivered twice.
func TestNumbersNearTheLimit(t *testing.T) {
	const top = window.MaxNumber - 64
	d := window.NewReceiver(window.ReceiverConfig{Window: 64, Hold: 1000, AckEvery: 2})
	packet := func(number uint64) *window.Packet {
		unit := window.Unit{Number: number, First: true, Last: true, Payload: []byte("x")}
		floor := max(number, 64) - 63 // the window slides
		return &window.Packet{Number: 1, Floor: floor, Units: []window.Unit{unit}}
	}
	count := 0
	for _, number := range []uint64{
		1, math.MaxInt64, math.MaxInt64 + 1, math.MaxInt64, math.MaxInt64 - 64, top, top - 1, top, top - 64, 5,
	} {
		p := packet(number)
		require.NoError(t, d.Validate(0, p))
		d.Take(0, p)
		count += len(d.Deliveries)
		for _, delivery := range d.Deliveries {
			d.Commit(0, delivery.Number)
		}
		d.Recycle()
	}
	assert.Equal(t, 5, count)
	assert.ErrorIs(t, d.Validate(0, packet(top+1)), &window.Error{Code: window.Invalid})
}
