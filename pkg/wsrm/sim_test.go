package wsrm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

// small are sizes of messages that go together.
func small(r *rand.Rand) int { return r.IntN(100) }

// randomPlan is what a seed makes of assurance, path, traffic and crashes.
func randomPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	p := plan{seed: seed, cfg: wsrm.Config{
		Assurance: wsrm.Assurance(1 + seed%3),
		Ordered:   seed/3%2 == 0,
		Window:    []int{64, 128, 1024}[r.IntN(3)],
		Hold:      []int{20_000, 200_000, 0}[r.IntN(3)],
		Datagram:  []int{256, 576 - 28, 1472}[r.IntN(3)],
		Limit:     []uint64{0, 1, 7, 50}[r.IntN(4)],
		// Longer than what crashes, outages and bad luck can take.
		Inactivity: 24 * time.Hour,
	}}
	p.profile = pick("14k4", "gprs", "3g", "lte", "wifi") + fmt.Sprintf(",loss=%d%%", r.IntN(31)) +
		pick("", ",burst=3", ",burst=8") + pick("", ",reorder=1%", ",reorder=20%") + pick("", ",dup=1%", ",dup=20%") + pick("", ",jitter=10ms", ",jitter=300ms") + pick("", ",outage=2s/20s", ",outage=15s/60s")
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
	p.crashes = []int{0, 0, 1, 4}[r.IntN(4)]
	p.volatile = p.cfg.Assurance == wsrm.AtLeastOnce && p.messages[1] == 0 && r.IntN(2) == 0
	return p
}

// check holds a run to its assurance.
func check(t testing.TB, w *world) {
	t.Helper()
	for i, from := range w.ends {
		to := w.ends[1-i]
		delivered, twice := map[int]bool{}, 0
		last := -1
		for at, id := range to.log {
			for _, began := range to.lives {
				if began == at && from.plan.cfg.Assurance == wsrm.AtLeastOnce {
					last = min(last, id-1) // a new life may begin with what the last one did not acknowledge
				}
			}
			if from.plan.cfg.Ordered {
				assert.Greater(t, id, last, "out of order at %d", at)
			}
			last = id
			if delivered[id] {
				twice++
			}
			delivered[id] = true
		}
		for id := range from.ids {
			switch from.plan.cfg.Assurance {
			case wsrm.AtMostOnce:
				// A crash loses what was acknowledged over datagrams and not yet handed over; order drops there what comes late.
				if !delivered[id] && (from.plan.cfg.Carried || from.plan.crashes == 0 && !from.plan.cfg.Ordered) {
					assert.True(t, from.lost[id], "message %d was lost in silence", id)
				}
			case wsrm.AtLeastOnce, wsrm.ExactlyOnce:
				assert.True(t, delivered[id], "message %d was not delivered", id)
				assert.True(t, from.acked[id], "message %d was not acknowledged", id)
				assert.False(t, from.lost[id] || from.unsent[id] || from.fate[id], "message %d was given up", id)
			}
		}
		if from.plan.cfg.Assurance != wsrm.AtLeastOnce {
			assert.Zero(t, twice, "delivered twice")
		}
		for _, ended := range from.ended {
			if !from.keeps && ended.Remote && from.life > 1 {
				continue // a new life that began behind the end
			}
			assert.Equal(t, wsrm.Complete, ended.Reason)
		}
	}
}

func simulate(t *testing.T, seed uint64) {
	t.Helper()
	run(t, randomPlan(seed))
}

func run(t *testing.T, p plan) {
	t.Helper()
	seed, w := p.seed, newWorld(p)
	ended := w.run(30*24*time.Hour, w.over)
	require.Empty(t, w.fails, "seed %d: %+v", seed, p)
	if !ended {
		for _, e := range w.ends {
			if e.engine != nil {
				t.Logf("end %d: %d of %d accepted, %d acknowledged, over %v, %+v", e.index, e.next, e.ids, len(e.acked), e.engine.Over(), e.engine.Stats())
			}
		}
	}
	require.True(t, ended, "seed %d: after %v: %+v", seed, w.now.Sub(start), p)
	check(t, w)
	if t.Failed() {
		t.Logf("seed %d: %+v", seed, p)
	}
}

// Any network, any crashes: every assurance holds, and every run ends.
func TestSimulation(t *testing.T) {
	seeds(t, 0, simulations, simulate)
}

// seeds runs a simulation for each of n seeds, as many at once as there are cores, until one fails.
func seeds(t *testing.T, from, n uint64, simulate func(*testing.T, uint64)) {
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
