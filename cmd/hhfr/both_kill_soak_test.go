//go:build soak

package main

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (f *killFigures) add(o killFigures) {
	f.server, f.client, f.batches = f.server+o.server, f.client+o.client, f.batches+o.batches
	f.messages, f.missing, f.doubled = f.messages+o.messages, f.missing+o.missing, f.doubled+o.doubled
	f.givenUp += o.givenUp
}

// TestSoakBothKilled: 5,000 kills of servers and clients, or as many as HHFR_SOAK_KILLS says, with
// stores in a file, in a folder and on NATS, over both transports. Nothing is missing, nothing is
// there twice, and no run is given up. A failure names its seed; what a process was about when it
// died depends on the machine.
func TestSoakBothKilled(t *testing.T) {
	kills := 5000
	if text := os.Getenv("HHFR_SOAK_KILLS"); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	var all killFigures
	for name, stores := range storesToKill {
		for _, flags := range [][]string{{"--transport", "tcp"}, {"--transport", "udp", "--ordered"}} {
			for left := kills / 6; left > 0 && !t.Failed(); {
				k := bothKills{
					stores: stores, flags: flags, kills: max(min(left, 250), 10), seed: uint64(time.Now().UnixNano()),
				}
				began := time.Now()
				f := k.run(t)
				left -= f.server + f.client
				t.Logf("%s %v: %+v, %v, seed %d", name, flags, f, time.Since(began).Round(time.Second), k.seed)
				all.add(f)
			}
		}
	}
	t.Logf("all: %d kills, %+v", all.server+all.client, all)
	assert.Zero(t, all.missing)
	assert.Zero(t, all.doubled)
	assert.Zero(t, all.givenUp)
	assert.GreaterOrEqual(t, all.server+all.client, kills-6)
}
