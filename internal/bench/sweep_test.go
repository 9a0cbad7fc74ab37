package bench_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bench"
)

// sized are sessions whose times lie on a line over sizes.
func sized(way bench.SessionWay, n int, slope, at0 float64) (list []bench.Cell) {
	for _, size := range []int{10, 50, 100} {
		list = append(list, bench.Cell{Service: "sum", Way: way, N: n, Size: size, Millis: slope*float64(size) + at0})
	}
	return list
}

func TestSweeps(t *testing.T) {
	for name, c := range map[string]struct{ p1, p2, p3, p4, crossing float64 }{
		"begins later":   {p1: 2, p2: 1100, p3: 22, p4: 0, crossing: 55},
		"always":         {p1: 1, p2: 10, p3: 2, p4: 20, crossing: 0},
		"at no size":     {p1: 3, p2: 50, p3: 2, p4: 20, crossing: -1},
		"no longer":      {p1: 3, p2: 10, p3: 2, p4: 20, crossing: -1},
		"one line":       {p1: 2, p2: 20, p3: 2, p4: 20, crossing: 0},
		"parallel above": {p1: 2, p2: 21, p3: 2, p4: 20, crossing: -1},
	} {
		cells := append(sized(bench.Met, 1, c.p1, c.p2), sized(bench.SOAPNew, 1, c.p3, c.p4)...)
		cells = append(cells, sized(bench.Met, 4, 77, 7)...)
		list := bench.Sweeps(cells, []int{1, 4})
		require.Len(t, list, 1, name)
		s := list[0]
		assert.Equal(t, []any{"sum", 1, bench.Met, bench.SOAPNew}, []any{s.Service, s.N, s.Way, s.Against}, name)
		for i, got := range []float64{s.P1, s.P2, s.P3, s.P4, s.Crossing} {
			assert.InDelta(t, []float64{c.p1, c.p2, c.p3, c.p4, c.crossing}[i], got, 1e-9, name)
		}
	}
	one := sized(bench.Met, 1, 1, 1)[:1]
	assert.Empty(t, bench.Sweeps(append(one, sized(bench.SOAPNew, 1, 1, 1)...), []int{1}), "one size has no line")
}

// Points that are on no line: the slope is that of least squares.
func TestSweepsFitAll(t *testing.T) {
	var cells []bench.Cell
	for _, way := range []bench.SessionWay{bench.Met, bench.SOAPNew} {
		for size, ms := range map[int]float64{1: 1000, 2: 1300, 4: 1300} {
			cells = append(cells, bench.Cell{Service: "sum", Way: way, N: 1, Size: size, Millis: ms})
		}
	}
	list := bench.Sweeps(cells, []int{1})
	require.Len(t, list, 1)
	assert.InDelta(t, 600/7., list[0].P1, 1e-9)
	assert.InDelta(t, 1000, list[0].P2, 1e-9)
}

// The time of a session is the median of its repeats.
func TestRepeats(t *testing.T) {
	var cells []bench.Cell
	for i, ms := range []float64{5, 1, 9, 3, 7, 100} {
		cells = append(cells,
			bench.Cell{Service: "sum", Way: bench.Met, Size: 1, N: 1, Repeat: i + 1, Millis: ms, Setup: ms / 2},
			bench.Cell{Service: "sum", Way: bench.Met, Size: 1, N: 2, Repeat: i + 1, Millis: 8})
	}
	list := bench.Repeats(cells)
	require.Len(t, list, 2)
	assert.Equal(t, 6.0, list[0].Millis)
	assert.Equal(t, 3.0, list[0].Setup)
	assert.Equal(t, []float64{1, 100}, []float64{list[0].Low, list[0].High})
	assert.True(t, bench.HasInterval(list[0].Count))
	assert.False(t, bench.HasInterval(5))
	assert.Equal(t, 2, list[1].N)
	assert.Empty(t, bench.Repeats(nil))
}
