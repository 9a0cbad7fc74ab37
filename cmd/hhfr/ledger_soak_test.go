//go:build soak

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestSoakLedger: 100 kills of either process during 100 000 messages, over tcp and over udp:
// exactly once, in order, none lost, none twice. A failure names its seed; what is in progress when
// a process dies depends on the machine.
func TestSoakLedger(t *testing.T) {
	for _, transport := range []string{"tcp", "udp"} {
		seed := uint64(time.Now().UnixNano())
		began := time.Now()
		killed := ledgerRun{transport: transport, messages: 100_000, kills: 100, seed: seed}.run(t)
		t.Logf("%s: 100000 messages, kills: %+v, %v, seed %d", transport, killed, time.Since(began).Round(time.Second),
			seed)
		assert.Equal(t, 100, killed.all())
		assert.GreaterOrEqual(t, killed.server, 20)
		assert.GreaterOrEqual(t, killed.client, 20)
		if t.Failed() {
			return
		}
	}
}
