package bench_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/clock"
)

// A hundred messages over a bad modem, through everything, in virtual time, compared with the time
// of their bytes and two round trips.
func TestGoalOnAThinLink(t *testing.T) {
	var ratios []float64
	var sum bench.BurstResult
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r, err := bench.Burst(t.Context(), clock.Real(), "14k4,loss=5%", seed)
			require.NoError(t, err, "seed %d", seed)
			ratios = append(ratios, r.Ratio())
			sum.Took, sum.Least = sum.Took+r.Took, r.Least
			sum.Datagrams, sum.Resent = sum.Datagrams+r.Datagrams, sum.Resent+r.Resent
		})
	}
	slices.Sort(ratios)
	median, tail := ratios[100], ratios[190]
	t.Logf("least %v; %v in the mean; median %.2f times, 95th percentile %.2f times, longest %.2f times; %.1f "+
		"datagrams, %.1f units sent again",
		sum.Least, sum.Took/200, median, tail, ratios[199], float64(sum.Datagrams)/200, float64(sum.Resent)/200)
	assert.LessOrEqual(t, median, 1.3)
	assert.LessOrEqual(t, tail, 2.5)
}

func TestBurstOnNoLink(t *testing.T) {
	_, err := bench.Burst(t.Context(), nil, "pigeon", 1)
	assert.ErrorIs(t, err, &link.Error{Code: link.BadProfile})
}
