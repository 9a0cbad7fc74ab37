package experiment

import (
	"runtime/debug"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A process that does not run, a clock that is set, and a machine that sleeps, with clocks that go
// on and clocks that do not.
func TestNoise(t *testing.T) {
	const usual = 26 * time.Millisecond
	for name, c := range map[string]struct {
		took, byDay time.Duration
		want        Noise
	}{
		"nothing": {usual, usual + time.Millisecond, Noise{}},
		"stopped": {time.Second, time.Second, Noise{Pauses: 1, LongestMillis: 1000}},
		"clock set forward": {
			usual, usual + time.Second, Noise{Pauses: 1, LongestMillis: 1026, ClockJumpMillis: 1000},
		},
		"clock set back":       {usual, usual - time.Second, Noise{ClockJumpMillis: -1000}},
		"sleep, clock stopped": {usual, time.Minute, Noise{Pauses: 1, LongestMillis: 60000, ClockJumpMillis: 59974}},
		"sleep, clock runs on": {time.Minute, time.Minute, Noise{Pauses: 1, LongestMillis: 60000}},
	} {
		var n Noise
		n.see(usual, usual)
		n.see(c.took, c.byDay)
		n.see(usual, usual)
		assert.Equal(t, c.want, n, name)
	}
}

func TestBusy(t *testing.T) {
	stat := "cpu  1000 50 250 90000 700 10 40 0 300 0\ncpu0 1 2 3 4\ncpu3 1 2 3 4\nintr 5\n"
	root := fstest.MapFS{"proc/stat": &fstest.MapFile{Data: []byte(stat)}}
	seconds, processors := busy(root)
	assert.InDelta(t, 13.5, seconds, 1e-9)
	assert.Equal(t, 2, processors)
	seconds, processors = busy(fstest.MapFS{})
	assert.Zero(t, seconds)
	assert.Equal(t, 1, processors)

	w := Watch()
	n := w.End()
	assert.LessOrEqual(t, n.OthersShare, 1.0)
	assert.GreaterOrEqual(t, n.OthersShare, -1.0)
}

func TestBuilds(t *testing.T) {
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: modified},
		}
	}
	for want, info := range map[string]*debug.BuildInfo{
		"devel":                       nil,
		"v1.2.3":                      {Main: debug.Module{Version: "v1.2.3"}},
		"devel 0123456789ab":          {Main: debug.Module{Version: "(devel)"}, Settings: vcs("false")},
		"v1.2.3 0123456789ab+changes": {Main: debug.Module{Version: "v1.2.3"}, Settings: vcs("true")},
	} {
		assert.Equal(t, want, build(info))
	}
}
