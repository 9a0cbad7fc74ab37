package wsrm_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Numbers end a window below the greatest position: what does not fit below is refused, and takes nothing of what fits.
func TestRollover(t *testing.T) {
	const window, top = 64, math.MaxUint64 - 1<<20 + 1 - 64
	cfg := wsrm.Config{Assurance: wsrm.ExactlyOnce, Window: window, Datagram: 256}
	// No engine gets there by sending: the state of one that did all up to here is written by hand.
	state := engine(t, cfg).AppendState(nil)
	_, limit := binary.Uvarint(state[3:])
	state = state[:3+limit]
	for _, v := range []uint64{top - 2, top - 2, 7, 0, 0, 1, 1, 0, 0, 0, 0} { // done, last, packet, phase, reason, both instances, and nothing received
		state = binary.AppendUvarint(state, v)
	}
	e, err := wsrm.Restore(cfg, state)
	require.NoError(t, err)
	for _, tc := range []struct {
		octets int
		code   wsrm.Code
		last   uint64
	}{
		{3 * 192, wsrm.Rollover, top - 2},
		{1, 0, top - 1},
		{2 * 192, wsrm.Rollover, top - 1},
		{1, 0, top},
		{1, wsrm.Rollover, top},
		{0, wsrm.Rollover, top},
	} {
		err := send(e, make([]byte, tc.octets))
		if tc.code == 0 {
			assert.NoError(t, err)
		} else {
			assert.ErrorIs(t, err, &wsrm.Error{Code: tc.code})
		}
		assert.Equal(t, tc.last, e.Last())
	}
	actions, err := e.Step(start, wsrm.Event{Kind: wsrm.Wake})
	require.NoError(t, err)
	assert.Len(t, find(t, actions, wsrm.Transmit).Packet.Units, 2, "the last two go out as any others")
}
