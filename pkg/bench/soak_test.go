//go:build soak

package bench_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/bench"
)

// TestSoakSessionTimes: each cell of the papers' tables takes its octets by bandwidth and its round trips, by its own counts, within a tenth.
func TestSoakSessionTimes(t *testing.T) {
	r, err := bench.Session(t.Context(), bench.SessionConfig{Counts: []int{1, 8}, Speed: 30})
	require.NoError(t, err)
	for _, c := range r.Cells {
		assert.InDelta(t, 0, c.Off(), 0.10, "%+v", c)
	}
	for _, m := range r.Models {
		assert.Less(t, m.T1, m.T2Kept, "%+v", m)
		assert.Less(t, m.BreakEvenNew, 4.0, "%+v", m)
	}
}
