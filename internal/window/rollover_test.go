package window_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/window"
)

// Numbers end a window below the greatest: what does not fit below is refused, and takes nothing of
// what fits.
func TestRollover(t *testing.T) {
	const size, top, unit = 64, window.MaxNumber - 64, 192
	s := window.NewSender(size, 1<<20)
	// No sender gets there by sending.
	s.Done, s.Last, s.Sent = top-2, top-2, top-2
	for _, tc := range []struct {
		bytes int
		code  window.Code
		last  uint64
	}{
		{3 * unit, window.Rollover, top - 2},
		{1, 0, top - 1},
		{2 * unit, window.Rollover, top - 1},
		{1, 0, top},
		{1, window.Rollover, top},
		{0, window.Rollover, top},
	} {
		err := s.Accept(make([]byte, tc.bytes), unit)
		if tc.code == 0 {
			assert.NoError(t, err)
		} else {
			assert.ErrorIs(t, err, &window.Error{Code: tc.code})
		}
		assert.Equal(t, tc.last, s.Last)
	}
	for number := uint64(top - 1); number <= top; number++ {
		next, ok := s.Next()
		assert.True(t, ok, "the last two go out as any others")
		assert.Equal(t, number, next)
		s.Launch(next, 1)
	}
	assert.False(t, s.Pending())
}
