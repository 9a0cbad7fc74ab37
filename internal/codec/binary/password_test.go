package binary_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/wire"
)

// TestPasswordsLeaveTheStreamAfterTheirFirstMessage: what stands unchanged in a thousand messages
// of a lane is in no shape and no store, and the bytes that travel do not depend on it, but for
// the first message and the first one behind each sync.
func TestPasswordsLeaveTheStreamAfterTheirFirstMessage(t *testing.T) {
	const messages, syncEvery = 1000, 100
	travels := func(password string) (all [][]byte) {
		d := newDirection(t, binary.Options{})
		for i := range messages {
			if i > 0 && i%syncEvery == 0 {
				d.sync(t)
			}
			frames := d.onLane(t, 0,
				enveloped(fmt.Sprintf(`<login user="u" secret="%s"><Password>%s</Password><n>%d</n></login>`,
					password, password, i)))
			require.Len(t, frames, 1)
			all = append(all, frames[0])
		}
		require.NotEmpty(t, d.from.store.octets)
		for _, store := range []*shapes{&d.from.store, &d.to.store} {
			for _, octets := range store.octets {
				assert.NotContains(t, string(octets), password)
			}
		}
		return all
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

// TestLanesLearnFromTheirOwnAllowance: a lane on which nothing repeats does not keep another from
// learning.
func TestLanesLearnFromTheirOwnAllowance(t *testing.T) {
	c := newEnd(binary.Options{}).coder
	shaped := func(lane uint64, m string) (is bool) {
		s := c.Split(lane, 4096, func(_ bool, p wire.Part) error {
			is = p.Program != nil
			return nil
		})
		defer s.Free()
		require.NoError(t, s.All(enveloped(m)))
		return is
	}
	texts := 0
	for i := range 2000 {
		if !shaped(1, fmt.Sprintf("<k%d><v%d>1</v%d></k%d>", i, i, i, i)) {
			texts++
		}
	}
	assert.Greater(t, texts, 1500)
	assert.True(t, shaped(2, "<other>1</other>"))
}
