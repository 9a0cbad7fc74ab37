package load_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/load"
)

var thresholds = []struct {
	text, wrong string // wrong: what its error contains
	missed      string // by the row of the test
}{
	{"p50<5ms", "", ""},
	{"p50 < 4ms", "", "4.000"},
	{"p50<=4ms", "", ""},
	{"p50>=4ms", "", ""},
	{"p50>4ms", "", "4.000"},
	{"p90<1s", "", ""},
	{"p99<50ms", "", "60.000"},
	{"p999<=1m0s", "", ""},
	{"max<100ms", "", "150.000"},
	{"mean<6000us", "", ""},
	{"errors<1%", "", "10.000"},
	{"errors <= 10%", "", ""},
	{"rate>100", "", "90.000"},
	{"rate>=89.5", "", ""},
	{"", "a threshold is as p99<50ms", ""},
	{"p99", "a threshold is as p99<50ms", ""},
	{"p99=50ms", "a threshold is as p99<50ms", ""},
	{"p99<50ms max<1s", "a threshold is as p99<50ms", ""},
	{"p95<50ms", "there are p50, p90", ""},
	{"p99<50", "is a time", ""},
	{"p99<-1s", "is a time", ""},
	{"errors<1", "in percent", ""},
	{"errors<some%", "is no number", ""},
	{"rate>NaN", "is no number", ""},
	{"rate>-1", "is no number", ""},
}

func TestThresholds(t *testing.T) {
	row := experiment.LoadRow{Responses: 1000, Successful: 900, Seconds: 10, MeanMillis: 5, P50Millis: 4, P90Millis: 40,
		P99Millis: 60, P999Millis: 100, MaxMillis: 150}
	for _, c := range thresholds {
		threshold, err := load.ParseThreshold(c.text)
		if c.wrong != "" {
			require.ErrorContains(t, err, c.wrong, c.text)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.text, threshold.String())
		assert.Equal(t, c.missed, threshold.Missed(&row), c.text)
	}
	fast, err := load.ParseThreshold("p99<50ms")
	require.NoError(t, err)
	assert.Equal(t, "nothing succeeded", fast.Missed(&experiment.LoadRow{Responses: 5}), "no time is no short time")
	assert.Zero(t, new(experiment.LoadRow).ErrorPercent())
	assert.Zero(t, new(experiment.LoadRow).PerSecond())
}

var mixes = []struct{ text, wrong string }{
	{"valid=90,invalid=5,odd=5", ""},
	{"valid=1", ""},
	{"valid=0,odd=1", ""},
	{"invalid=1000,odd=1000", ""},
	{"", "each of valid, invalid and odd once"},
	{"valid=1,valid=1", "once"},
	{"strange=1", "each of valid"},
	{"valid", "a weight"},
	{"valid=-1", "a weight"},
	{"valid=1001", "a weight"},
	{"valid=0", "nothing to send"},
}

func TestMixes(t *testing.T) {
	for _, c := range mixes {
		m, err := load.ParseMix(c.text)
		if c.wrong != "" {
			require.ErrorContains(t, err, c.wrong, c.text)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.text, m.String())
	}
}

func FuzzThreshold(f *testing.F) {
	for _, c := range thresholds {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if threshold, err := load.ParseThreshold(text); err == nil {
			threshold.Missed(&experiment.LoadRow{Successful: 1})
			require.Equal(t, text, threshold.String())
		}
	})
}

func FuzzMix(f *testing.F) {
	for _, c := range mixes {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := load.ParseMix(text)
		if err != nil {
			return
		}
		again, err := load.ParseMix(m.String())
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}
