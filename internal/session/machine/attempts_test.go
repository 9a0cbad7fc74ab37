package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// pauses takes misses until no further attempt is wanted, with the pauses between.
func pauses(m *Machine, passes func(try int) bool) (all []time.Duration) {
	now := epoch
	for try := 0; ; try++ {
		tasks := m.Step(now, Missed{Passes: passes(try)})
		if len(tasks) == 0 || tasks[0].Do != Try {
			return all
		}
		all = append(all, tasks[0].After)
		now = now.Add(tasks[0].After)
	}
}

func TestPauses(t *testing.T) {
	always, never := func(int) bool { return true }, func(int) bool { return false }
	none := func(time.Duration) time.Duration { return 0 }
	most := func(d time.Duration) time.Duration { return d }
	ms := time.Millisecond
	for name, c := range map[string]struct {
		cfg    Config
		passes func(int) bool
		want   []time.Duration
	}{
		"a peer that refuses": {Config{Nodes: 1, Sequenced: true, Reconnect: time.Hour}, never, nil},
		"no time":             {Config{Nodes: 1, Sequenced: true}, always, nil},
		"an attempt for each": {Config{Nodes: 3}, always, []time.Duration{0, 0}},
		"one of a sequence":   {Config{Nodes: 3, Sequenced: true}, always, []time.Duration{0, 0}},
		"each node refuses": {
			Config{Nodes: 2, Sequenced: true, Reconnect: time.Hour}, never, []time.Duration{0},
		},
		"pauses double": {
			Config{Nodes: 1, Sequenced: true, Reconnect: 2 * time.Second}, always,
			[]time.Duration{200 * ms, 400 * ms, 800 * ms},
		},
		"shorter ones in a group": {
			Config{Nodes: 2, Sequenced: true, Reconnect: 150 * ms}, always,
			[]time.Duration{0, 50 * ms, 0, 100 * ms, 0},
		},
		"half of a pause is by chance": {
			Config{Nodes: 1, Sequenced: true, Reconnect: 400 * ms, Random: none}, always,
			[]time.Duration{100 * ms, 200 * ms},
		},
		"one of two refuses": {
			Config{Nodes: 2, Sequenced: true, Reconnect: 40 * ms}, func(try int) bool { return try%2 == 0 },
			[]time.Duration{0},
		},
	} {
		if c.cfg.Random == nil {
			c.cfg.Random = most
		}
		assert.Equal(t, c.want, pauses(New(c.cfg, epoch), c.passes), name)
	}
}

// No pause is longer than the longest, and no attempt is made later than Reconnect allows.
func TestPausesEnd(t *testing.T) {
	cfg := Config{Nodes: 1, Sequenced: true, Reconnect: time.Minute}
	cfg.Random = func(d time.Duration) time.Duration { return d }
	m := New(cfg, epoch)
	var sum time.Duration
	for _, pause := range pauses(m, func(int) bool { return true }) {
		assert.LessOrEqual(t, pause, MaxPause)
		sum += pause
	}
	assert.LessOrEqual(t, sum, time.Minute)
	assert.Greater(t, sum, time.Minute-MaxPause)
}
