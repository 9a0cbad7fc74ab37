package arq_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/arq"
)

// small are sizes of messages that go together.
func small(r *rand.Rand) int { return r.IntN(100) }

// randomPlan is what a seed makes of path and traffic.
func randomPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	p := plan{seed: seed, cfg: arq.Config{
		Window:   []int{64, 128, 1024}[r.IntN(3)],
		Hold:     []int{20_000, 200_000, 0}[r.IntN(3)],
		Datagram: []int{256, 576 - 28, 1472}[r.IntN(3)],
		// Longer than what outages and bad luck can take.
		Inactivity: 24 * time.Hour,
	}}
	p.profile = pick("14k4", "gprs", "3g", "lte", "wifi") + fmt.Sprintf(",loss=%d%%", r.IntN(31)) +
		pick("", ",burst=3", ",burst=8") + pick("", ",reorder=1%", ",reorder=20%") +
		pick("", ",dup=1%", ",dup=20%") + pick("", ",jitter=10ms", ",jitter=300ms") +
		pick("", ",outage=2s/20s", ",outage=15s/60s")
	p.messages = [2]int{20 + r.IntN(200), []int{0, 1, 100}[r.IntN(3)]}
	large := r.IntN(4) == 0
	p.sizes = func(r *rand.Rand) int {
		if large && r.IntN(10) == 0 {
			return r.IntN(8000)
		}
		return r.IntN(100)
	}
	p.every = []time.Duration{0, 10 * time.Millisecond, time.Second}[r.IntN(3)]
	p.commit = []time.Duration{0, time.Millisecond, 3 * time.Second}[r.IntN(3)]
	return p
}

// check holds a run to what is promised: each message once, in order, and both sequences complete.
func check(t testing.TB, w *world) {
	t.Helper()
	for i, from := range w.ends {
		var want []int
		for id := range from.ids {
			want = append(want, id)
		}
		assert.Equal(t, want, w.ends[1-i].log, "end %d", i)
		assert.Equal(t, from.engine.Last(), from.acked)
		require.Len(t, from.ended, 2)
		for _, ended := range from.ended {
			assert.Equal(t, arq.Complete, ended.Reason)
		}
	}
}

func simulate(t *testing.T, seed uint64) {
	t.Helper()
	p := randomPlan(seed)
	w := newWorld(p)
	ended := w.run(30*24*time.Hour, w.over)
	require.Empty(t, w.fails, "seed %d: %+v", seed, p)
	require.True(t, ended, "seed %d: after %v: %+v", seed, w.Now.Sub(start), p)
	check(t, w)
	if t.Failed() {
		t.Logf("seed %d: %+v", seed, p)
	}
}

// Any network: each message arrives once, in order, and every run ends.
func TestSimulation(t *testing.T) { seeds(t, 0, simulations) }

// seeds runs a simulation for each of n seeds, as many at once as there are cores, until one fails.
func seeds(t *testing.T, from, n uint64) {
	t.Helper()
	for seed := from; seed < from+n; seed++ {
		t.Run(fmt.Sprint(seed), func(one *testing.T) {
			one.Parallel()
			if !t.Failed() {
				simulate(one, seed)
			}
		})
	}
}
