package bench_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/bench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSession lives through short sessions on a thin link, much faster than it is. How exact its times are is for the soak test, on a quiet machine.
func TestSession(t *testing.T) {
	heard := 0
	r, err := bench.Session(t.Context(), bench.SessionConfig{Counts: []int{1, 3}, Sizes: []int{4}, Speed: 100, Each: func(bench.Cell) { heard++ }})
	if err != nil {
		require.ErrorIs(t, err, bench.ErrTooFast)
	}
	require.Len(t, r.Cells, 2*1*3*2)
	assert.Equal(t, len(r.Cells), heard)
	for _, c := range r.Cells {
		assert.Positive(t, c.Sent)
		assert.Positive(t, c.Received)
		assert.Positive(t, c.Expected)
		assert.GreaterOrEqual(t, c.Millis, c.Expected*0.98, "%+v", c)
	}
	require.Len(t, r.Models, 2)
	assert.Equal(t, 5660.0, r.Cells[0].Paper)
}

func TestSessionRefuses(t *testing.T) {
	_, err := bench.Session(t.Context(), bench.SessionConfig{Link: "nonsense"})
	assert.Error(t, err)
	_, err = bench.Session(t.Context(), bench.SessionConfig{Link: "edge,loss=2%"})
	assert.Error(t, err)
	_, err = bench.Session(t.Context(), bench.SessionConfig{Services: []string{"echo"}})
	assert.ErrorContains(t, err, "concat and sum")
}
