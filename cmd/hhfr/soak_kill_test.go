//go:build soak

package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestSoakServerKilled: runs against servers that are killed several times, at random points and
// paces. A failure names its seed; what is in progress when a server dies depends on the machine.
func TestSoakServerKilled(t *testing.T) {
	seeds := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	runs, kills, unknown := 0, 0, 0
	for end := time.Now().Add(*soakFor); time.Now().Before(end) && !t.Failed(); runs++ {
		seed := seeds.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 0))
		k := killedRun{messages: 1000 + rnd.IntN(3000), atOnce: 1 + rnd.IntN(64)}
		if rnd.IntN(2) == 0 {
			k.misbehave = "slow=" + (time.Duration(rnd.IntN(20)) * time.Millisecond).String()
		}
		for range 1 + rnd.IntN(4) {
			k.kills = append(k.kills, 1+rnd.IntN(k.messages/2))
		}
		slices.Sort(k.kills)
		k.kills = slices.Compact(k.kills)
		unknown += len(k.run(t))
		kills += len(k.kills)
		if t.Failed() {
			t.Logf("seed %d: %+v", seed, k)
		}
	}
	t.Logf("%d runs, %d kills, %d messages of unknown fate", runs, kills, unknown)
	assert.Positive(t, runs)
}
