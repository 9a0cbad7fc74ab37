//go:build soak

package streamer_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/workload"
)

var (
	soakFor  = flag.Duration("soak", 5*time.Minute, "how long random sessions go on")
	soakSeed = flag.Uint64("soakseed", 0, "run this session only, a hundred times")
)

// TestSoakSessions: random messages between two ends with random limits and sync sizes, in both
// directions, some cancelled, arrive once and as they are, or end in an error that limits or
// cancels explain; no stream breaks. A failure names its seed.
func TestSoakSessions(t *testing.T) {
	material := append(shared.Envelopes(t, true), workload.Mixed(5)...)
	if *soakSeed != 0 {
		for range 100 {
			runSession(t, *soakSeed, material)
		}
		return
	}
	first := uint64(time.Now().UnixNano())
	t.Logf("first seed %d", first)
	seeds := rand.New(rand.NewPCG(first, 0))
	sessions, messages := 0, 0
	for end := time.Now().Add(*soakFor); time.Now().Before(end); sessions++ {
		seed := seeds.Uint64()
		messages += runSession(t, seed, material)
		runBroken(t, seed, material)
	}
	goleak.VerifyNone(t)
	t.Logf("%d sessions, %d messages", sessions, messages)
	require.Positive(t, sessions)
}
