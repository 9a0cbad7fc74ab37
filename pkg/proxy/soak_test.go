//go:build soak

package proxy_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// soakFor is how long random runs go on.
const soakFor = 2 * time.Minute

// TestSoakCallsThroughFailures: random runs, as in TestRandomCallsThroughFailures, with ever new seeds.
func TestSoakCallsThroughFailures(t *testing.T) {
	runs, calls := 0, int64(0)
	for end := time.Now().Add(soakFor); time.Now().Before(end) && !t.Failed(); runs++ {
		s := storm{t: t, seed: uint64(time.Now().UnixNano())}
		s.run(10)
		calls += s.through.Load()
	}
	goleak.VerifyNone(t)
	t.Logf("%d runs, %d calls through", runs, calls)
}
