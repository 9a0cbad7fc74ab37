package wsrm_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

// waits are the times from handing messages to the engine until they are delivered, sorted, and the octets sent in the mean of all seeds.
func waits(t *testing.T, link string, ordered bool, octets int, every time.Duration) (all []time.Duration, sent int64) {
	t.Helper()
	const seeds, messages = 40, 100
	for seed := range uint64(seeds) {
		w := newWorld(plan{
			cfg:     wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: ordered, Datagram: 1200 - sessionID, RTT: time.Second},
			profile: link, seed: seed, messages: [2]int{messages, 0}, every: every, sizes: func(*rand.Rand) int { return octets - 8 },
		})
		w.ends[1].ids = -1
		w.beside = sessionID
		require.True(t, w.run(time.Hour, func() bool { return !w.ends[0].finished.IsZero() }), "seed %d", seed)
		require.Empty(t, w.fails)
		for id, at := range w.ends[1].arrived {
			all = append(all, at.Sub(w.ends[0].queued[id]))
		}
		sent += w.octets[0] / seeds
	}
	require.Len(t, all, seeds*messages)
	slices.Sort(all)
	return all, sent
}

// What order costs and saves (docs/rationale.md): with it content is as short as memory between messages makes it; without it each message stands for itself, and says its number.
func TestWhatOrderCosts(t *testing.T) {
	kinds := []struct {
		name           string
		memory, itself int // octets of a message, as make compare has them
	}{{"w2-10floats", 45, 45}, {"w3-20records", 53, 71}, {"w5-headers", 86, 262}}
	for _, link := range []string{"14k4,loss=5%", "edge,loss=5%"} {
		for _, every := range []time.Duration{0, 200 * time.Millisecond, 2 * time.Second} {
			for _, kind := range kinds {
				ordered, sent := waits(t, link, true, kind.memory, every)
				alone, sentAlone := waits(t, link, false, kind.itself+2, every)
				share := func(l []time.Duration, percent int) float64 { return l[len(l)*percent/100].Seconds() }
				t.Logf("%-12s every %-5v %-12s ordered: %5.2f s median, %5.2f s 95 %%, %5d octets; each for itself: %5.2f s, %5.2f s, %5d octets", link, every, kind.name,
					share(ordered, 50), share(ordered, 95), sent, share(alone, 50), share(alone, 95), sentAlone)
				assert.Less(t, sent, sentAlone)
				assert.Less(t, share(ordered, 50), 1.05*share(alone, 50), "half of the messages wait for nothing, or for less")
				if kind.name == "w5-headers" && every == 0 {
					assert.Less(t, share(ordered, 95), 0.6*share(alone, 95), "what memory saves is more than what order costs")
				}
			}
		}
	}
}
