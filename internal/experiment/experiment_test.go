package experiment_test

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/experiment"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// A phone tells what its system lets an app read.
func TestComputers(t *testing.T) {
	phone := fstest.MapFS{
		"proc/sys/kernel/osrelease": file("6.1.75-android14\n"),
		"proc/device-tree/model":    file("Some Phone 5\x00"),
		"proc/cpuinfo":              file("CPU part\t: 0xd05\n\nHardware\t: Some SoC\n"),
		"proc/meminfo":              file("MemTotal:        3907028 kB\nMemFree: 1 kB\n"),
		"proc/loadavg":              file("1.25 0.90 0.50 2/900 4711\n"),
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq":  file("1766400\n"),
		"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq":  file("1766400\n"),
		"sys/devices/system/cpu/cpu10/cpufreq/scaling_cur_freq": file("825600\n"),
		"sys/devices/system/cpu/cpu10/cpufreq/cpuinfo_max_freq": file("2841600\n"),
		"sys/class/thermal/thermal_zone0/temp":                  file("38500\n"),
		"sys/class/thermal/thermal_zone1/temp":                  file("-274000\n"),
		"sys/class/thermal/thermal_zone2/temp":                  file("not readable"),
		"sys/class/power_supply/usb/type":                       file("USB\n"),
		"sys/class/power_supply/battery/type":                   file("Battery\n"),
		"sys/class/power_supply/battery/capacity":               file("81\n"),
		"sys/class/power_supply/battery/status":                 file("Discharging\n"),
	}
	c := experiment.Describe(phone, "v1")
	celsius, percent, load, no := 38.5, 81.0, 1.25, false
	want := experiment.Computer{
		Program: "v1", Go: c.Go, System: c.System, Processors: c.Processors,
		Kernel: "6.1.75-android14", Model: "Some Phone 5", Processor: "Some SoC", MHz: 1766.4, MaxMHz: 2841.6,
		MemoryOctets: 3907028 << 10, Celsius: &celsius, BatteryPercent: &percent, Charging: &no, LoadAverage: &load,
	}
	assert.Equal(t, want, c)

	bare := experiment.Describe(fstest.MapFS{}, "v1")
	assert.Equal(t, experiment.Computer{Program: "v1", Go: c.Go, System: c.System, Processors: c.Processors}, bare)
	assert.NotEmpty(t, c.System)
}

// Whoever tells nothing, or something else, is not asked again.
func TestAsk(t *testing.T) {
	c := experiment.Computer{Program: "v1", System: "linux/arm64", Processors: 8}
	told, err := json.Marshal(c)
	require.NoError(t, err)
	for _, answer := range []struct {
		status int
		body   string
		want   *experiment.Computer
	}{
		{http.StatusOK, string(told), &c},
		{http.StatusNotFound, string(told), nil},
		{http.StatusOK, "<html>", nil},
		{http.StatusOK, `{"other":1}`, nil},
		{http.StatusOK, `{"system":"` + strings.Repeat("x", 1<<20), nil},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "/machine", r.URL.Path)
			w.WriteHeader(answer.status)
			_, _ = io.WriteString(w, answer.body)
		}))
		at, err := url.Parse(s.URL + "/geoip?x=1")
		require.NoError(t, err)
		assert.Equal(t, answer.want, experiment.Ask(t.Context(), s.Client(), at), "%.20s", answer.body)
		s.Close()
		assert.Nil(t, experiment.Ask(t.Context(), s.Client(), at))
	}
	assert.Equal(t, runtime.GOOS+"/"+runtime.GOARCH, experiment.This().System)
	assert.NotEmpty(t, experiment.This().Program)
}

// Medians of sorted lists, and intervals that hold the median of what the repeats are taken from
// as often as they say.
func TestMedians(t *testing.T) {
	for _, c := range []struct {
		list           []float64
		mid, low, high float64
	}{
		{nil, 0, 0, 0},
		{[]float64{3}, 3, 3, 3},
		{[]float64{5, 1, 3}, 3, 1, 5},
		{[]float64{4, 1, 3, 2}, 2.5, 1, 4},
		{[]float64{6, 5, 4, 3, 2, 1}, 3.5, 1, 6},
		{[]float64{9, 1, 8, 2, 7, 3, 6, 4, 5, 10}, 5.5, 2, 9}, // ranks 2 and 9 hold it in 97.9 %
	} {
		mid, low, high := experiment.Median(c.list)
		assert.Equal(t, []float64{c.mid, c.low, c.high}, []float64{mid, low, high}, "%v", c.list)
	}
	rnd, held := rand.New(rand.NewPCG(1, 2)), 0
	const trials, median = 2000, 0.6931471805599453 // of the exponential distribution
	for range trials {
		list := make([]float64, 15)
		for i := range list {
			list[i] = rnd.ExpFloat64()
		}
		if _, low, high := experiment.Median(list); low <= median && median <= high {
			held++
		}
	}
	assert.GreaterOrEqual(t, held, trials*95/100)
	assert.Less(t, held, trials*99/100)
}

// Runs of one distribution seldom differ, those of two do.
func TestDifferences(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	runs := func(shift float64) (list []float64) {
		for range 12 {
			list = append(list, rnd.NormFloat64()+shift)
		}
		return list
	}
	same, apart := 0, 0
	const trials = 1000
	for range trials {
		if _, significant := experiment.Differ(runs(10), runs(10)); significant {
			same++
		}
		if _, significant := experiment.Differ(runs(10), runs(13)); significant {
			apart++
		}
	}
	assert.Less(t, same, trials*7/100)
	assert.Greater(t, apart, trials*99/100)
	p, significant := experiment.Differ(nil, []float64{1})
	assert.Equal(t, 1.0, p)
	assert.False(t, significant)
}

func TestRead(t *testing.T) {
	const environment = `{"environment":{"version":1,"started":"2026-01-02T03:04:05Z","arguments":["bench"],` +
		`"machine":{"program":"v1","go":"go1","system":"linux/arm64","processors":8}}}` + "\n"
	var got []experiment.Measured
	keep := func(r experiment.Measured) error { got = append(got, r); return nil }
	err := experiment.Read(strings.NewReader(environment+"\n"+`{"session":{"service":"sum","n":4,"ms":1.5,"later":1}}`+
		"\n"+`{"later":{}}`+"\n"+`{"noise":{"pauses":2}}`), keep)
	require.NoError(t, err)
	require.Len(t, got, 3)
	assert.Equal(t, "linux/arm64", got[0].Environment.Machine.System)
	assert.Equal(t, &experiment.SessionRow{Service: "sum", N: 4, Millis: 1.5}, got[1].Session)
	assert.Equal(t, 2, got[2].Noise.Pauses)

	for in, want := range map[string]string{
		"":                              "no record of a measurement",
		`{"session":{}}`:                "line 1: no environment before the first measurement, which bench writes",
		environment + "{\"noise\"":      "line 2 is no record of a measurement: unexpected end of JSON input",
		`{"environment":{"version":2}}`: "line 1: records of version 2, this program reads version 1",
		"<xml/>": "line 1 is no record of a measurement: invalid character '<' looking for " +
			"beginning of value",
		environment + strings.Repeat(" ", 17<<20): "line 2 is longer than any record",
	} {
		assert.EqualError(t, experiment.Read(strings.NewReader(in), keep), want)
	}
}
