package arq_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/link"
)

const (
	// goalMessages contents of goalOctets each are what 100 messages of ten floats are.
	goalMessages = 100
	goalOctets   = 45
	// sessionID is what a transport puts before each packet, in bytes.
	sessionID = 8
)

// goalRun is how long it takes, and how many bytes it sends, until all is acknowledged at the
// source.
func goalRun(t testing.TB, seed uint64) (took time.Duration, bytes int64) {
	t.Helper()
	p := plan{
		cfg:      arq.Config{Datagram: 1500 - 28 - sessionID, RTT: time.Second},
		profile:  "14k4,loss=5%",
		seed:     seed,
		messages: [2]int{goalMessages, 0},
		sizes:    func(*rand.Rand) int { return goalOctets - 8 },
	}
	w := newWorld(p)
	w.ends[1].ids = -1 // it has nothing to say, and does not say so
	w.beside = sessionID
	require.True(t, w.run(time.Hour, func() bool { return !w.ends[0].finished.IsZero() }), "seed %d", seed)
	require.Empty(t, w.fails)
	return w.ends[0].finished.Sub(start), w.bytes[0]
}

// 100 messages on a bad modem: the time until all are acknowledged, against that of their bytes and
// two round trips (the goal of reliable sequences on thin links).
func TestGoalOnAThinLink(t *testing.T) {
	profile, err := link.ParseProfile("14k4")
	require.NoError(t, err)
	datagrams := int64(4)
	bytes := goalMessages*goalOctets + datagrams*(28+sessionID)
	least := time.Duration(float64(bytes*8)/float64(profile.Bandwidth)*float64(time.Second)) + 2*profile.RTT
	var all []time.Duration
	var sum int64
	for seed := range uint64(200) {
		took, bytes := goalRun(t, seed)
		all = append(all, took)
		sum += bytes
	}
	slices.Sort(all)
	median, tail := float64(all[100])/float64(least), float64(all[190])/float64(least)
	t.Logf("least %v; median %v, %.2f times; 95th percentile %v, %.2f times; longest %v", least, all[100], median,
		all[190], tail, all[199])
	t.Logf("%d bytes in the mean, %d are needed", sum/200, bytes)
	assert.LessOrEqual(t, median, 1.3)
	assert.LessOrEqual(t, tail, 2.5)
}
