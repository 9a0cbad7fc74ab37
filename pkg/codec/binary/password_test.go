package binary_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/codec/binary"
)

// TestPasswordsLeaveTheStreamAfterTheirFirstMessage: what stands unchanged in a thousand messages of a lane is in no shape and no store, and the octets that travel do not depend on it,
// but for the first message and the first one behind each sync.
func TestPasswordsLeaveTheStreamAfterTheirFirstMessage(t *testing.T) {
	const messages, syncEvery = 1000, 100
	travels := func(password string) (packed [][]byte) {
		k := newPacking(t, binary.Options{})
		for i := range messages {
			if i > 0 && i%syncEvery == 0 {
				k.sync()
			}
			octets, err := k.send(t, 0, envelope(fmt.Sprintf(`<login user="u" secret="%s"><Password>%s</Password><n>%d</n></login>`, password, password, i)), true)
			require.NoError(t, err)
			packed = append(packed, bytes.Clone(octets))
		}
		require.NotEmpty(t, k.from.store.octets)
		for _, store := range []*shapes{&k.from.store, &k.to.store} {
			for _, octets := range store.octets {
				assert.NotContains(t, string(octets), password)
			}
		}
		return packed
	}
	one, other := travels("correct-horse-battery"), travels("Tr0ub4dor&amp;3 is longer")
	for i := range one {
		if same := bytes.Equal(one[i], other[i]); i%syncEvery == 0 {
			assert.False(t, same, "message %d", i)
		} else {
			require.True(t, same, "message %d: % x, % x", i, one[i], other[i])
		}
	}
}

// TestLanesLearnFromTheirOwnAllowance: a lane on which nothing repeats does not keep another from learning.
func TestLanesLearnFromTheirOwnAllowance(t *testing.T) {
	c := newEnd(binary.Options{}).coder
	numbers := map[uint64]int{}
	send := func(lane uint64, m string) (number uint64) {
		require.NoError(t, c.Split(lane, nil, strings.NewReader(enveloped(m)), 4096, func(_ bool, n uint64, _ bool, _ []byte) error {
			number = n
			return nil
		}))
		return number
	}
	c.PeerLimits(4096, 1<<30)
	for i := range 2000 {
		numbers[min(send(1, fmt.Sprintf("<k%d><v%d>1</v%d></k%d>", i, i, i, i)), 1)]++
	}
	assert.Greater(t, numbers[0], 1500, "as text")
	assert.Positive(t, send(2, "<other>1</other>"))
}
