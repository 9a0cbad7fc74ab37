package bench_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/bench"
)

func cells(way bench.SessionWay, setup float64, millis map[int]float64) (list []bench.Cell) {
	for n, ms := range millis {
		list = append(list, bench.Cell{Service: "sum", Size: 10, Way: way, N: n, Millis: ms, Setup: setup})
	}
	return list
}

// A cost is the slope through the sessions of all lengths, not through the shortest and the
// longest.
func TestModelFitsAllLengths(t *testing.T) {
	all := cells(bench.Explicit, 900, map[int]float64{1: 1000, 2: 1300, 4: 1300})
	all = append(all, cells(bench.SOAPNew, 0, map[int]float64{1: 300, 2: 900, 3: 1500})...)
	m := bench.ModelOf(all)
	assert.InDelta(t, 600/7., m.T1, 1e-9, "least squares; the ends alone would say 100")
	assert.InDelta(t, 600, m.T2New, 1e-9)
	assert.InDelta(t, 900/(600-600/7.), m.BreakEvenNew, 1e-9)
	assert.Zero(t, m.T2Kept, "nobody measured it")
	assert.Zero(t, m.BreakEvenKept)
	assert.Empty(t, m.Doubts)
}

// Sessions of one length say nothing about a message: their time has the setup in it.
func TestModelOfOneLength(t *testing.T) {
	one := cells(bench.Explicit, 5467, map[int]float64{1: 6652})
	m := bench.ModelOf(append(append(one, one...), cells(bench.SOAPNew, 0, map[int]float64{1: 3400})...))
	assert.Equal(t, bench.Model{Service: "sum", Size: 10, Setup: 5467}, m)
}

// Times that shrink with more messages are no cost of a message. That is reported, and no
// break-even is computed from them.
func TestModelRefusesTimesThatDoNotGrow(t *testing.T) {
	all := cells(bench.Explicit, 900, map[int]float64{1: 3739, 2: 3660})
	all = append(all, cells(bench.SOAPNew, 0, map[int]float64{1: 300, 2: 900})...)
	all = append(all, cells(bench.ExplicitQueued, 900, map[int]float64{1: 5, 2: 5})...)
	m := bench.ModelOf(all)
	assert.Zero(t, m.T1)
	assert.Zero(t, m.BreakEvenNew)
	assert.Zero(t, m.BreakEvenQueued)
	assert.InDelta(t, 600, m.T2New, 1e-9)
	assert.Equal(t, []string{
		"sum(10): the times of explicit do not grow with the messages (-79.0 ms a message); they are not used",
		"sum(10): the times of explicit-queued do not grow with the messages (0.0 ms a message); they are not used",
	}, m.Doubts)
}
