//go:build soak

package bench_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/link"
)

// TestSoakSessionTimes: each cell of the papers' tables takes its bytes by bandwidth and its round
// trips, by its own counts, within a tenth.
func TestSoakSessionTimes(t *testing.T) {
	r, err := bench.Session(t.Context(), bench.SessionConfig{Ways: paperWays})
	require.NoError(t, err)
	require.Len(t, r.Cells, 4*(4*4+3*4))
	for _, c := range r.Cells {
		assert.InDelta(t, 0, c.Off(), 0.10, "%+v", c)
		assert.LessOrEqual(t, c.CPU, 0.05, "%+v", c)
	}
	for _, m := range r.Models {
		assert.Less(t, m.T1, m.T2Kept, "%+v", m)
		assert.Less(t, m.T1Queued, m.T1, "%+v", m)
		assert.Less(t, m.BreakEvenNew, 4.0, "%+v", m)
		assert.Less(t, m.BreakEvenQueued, 3.0, "%+v", m)
	}
}

// TestSoakSessionTimesOnEveryLink: the same for short sessions on all links.
func TestSoakSessionTimesOnEveryLink(t *testing.T) {
	for _, name := range link.Names() {
		r, err := bench.Session(t.Context(), bench.SessionConfig{Link: name, Counts: []int{1, 8}, Sizes: []int{10}})
		require.NoError(t, err, name)
		for _, c := range r.Cells {
			assert.InDelta(t, 0, c.Off(), 0.10, "%s %+v", name, c)
		}
	}
}
