//go:build soak && !race

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSoakLongMessage: 200 MB, ten kills of each process, 64 MB of memory.
func TestSoakLongMessage(t *testing.T) {
	for _, transport := range []string{"tcp", "udp"} {
		killed := longRun{transport: transport, size: 200_000_000, kills: 10, memory: 64 << 20}.run(t)
		assert.Equal(t, kills{10, 10}, killed, transport)
	}
}
