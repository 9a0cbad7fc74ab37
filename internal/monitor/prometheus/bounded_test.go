package prometheus_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/monitor/prometheus"
)

// export returns the series of a meter with their values, as text.
func export(t *testing.T, m *meter.Meter) map[string]string {
	t.Helper()
	var text bytes.Buffer
	prometheus.New(func() *meter.Snapshot { return m.Snapshot(time.Now()) }).Write(&text)
	series := map[string]string{}
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "#") {
			at := strings.LastIndexByte(line, ' ')
			require.Empty(t, series[line[:at]], line)
			series[line[:at]] = strings.TrimSpace(line[at:])
		}
	}
	return series
}

func call(up *meter.Upstream, operation string) {
	var c, plain meter.Call
	up.Plain("no_partner").Begin(&plain, time.Now())
	plain.Name([]byte(operation))
	plain.Done(time.Now(), true)
	up.Begin(&c, time.Now())
	c.Name([]byte(operation))
	c.Request(100)
	c.Reply(200)
	c.Wire().Sent.Add(10)
	c.Done(time.Now(), true)
}

// TestSeriesAreBounded: 100 upstreams, each in both roles with calls, failures and whatever goes
// without a stream for every reason, and 20,000 operations called over streams and plainly, have
// fewer than 40,000 series, also when other operations get busy again and again. No series
// disappears, and all calls are in one.
func TestSeriesAreBounded(t *testing.T) {
	m := meter.New(time.Now())
	reasons := strings.Fields("blocked certificate client failed in_sequence lost no_lane no_offer no_partner " +
		"no_proxy no_room not_yet own refused silent unreachable wrong_scheme")
	calls := 0
	var before map[string]string
	for round := range 4 {
		for i := range 20_000 {
			for _, role := range []*meter.Role{m.Near, m.Far} {
				up := role.Upstream(fmt.Sprintf("http://camera-%d.example/onvif", i%100))
				call(up, fmt.Sprintf("Operation%d", i))
				if i < 100 {
					for _, reason := range reasons {
						up.Plain(reason).Request(1)
						up.Failed(reason, "", time.Now())
					}
				}
				for range i % 500 / 499 * 50 { // some are busier, others in each round
					call(up, fmt.Sprintf("Busy%d-%d", round, i))
				}
			}
			calls += 1 + i%500/499*50
		}
		series := export(t, m)
		assert.Less(t, len(series), 40_000)
		for one := range before {
			if series[one] == "" {
				t.Errorf("%s disappeared", one)
			}
		}
		before = series
	}
	t.Logf("%d series", len(before))
	for _, role := range []string{"near", "far"} {
		total, own := 0, 0
		for one, value := range before {
			if strings.HasPrefix(one, `hhfr_operation_calls_total{role="`+role) {
				var n int
				_, err := fmt.Sscan(value, &n)
				require.NoError(t, err, one)
				total += n
				own++
			}
		}
		assert.Equal(t, 2*calls, total, "over streams and plainly")
		assert.LessOrEqual(t, own, 2*201)
		assert.Greater(t, own, 2*51, "operations that got busy later have series as well")
	}
}

// TestBusyLater: an operation that gets busy among 20,000 others, which all came before it, gets
// series of its own soon.
func TestBusyLater(t *testing.T) {
	m := meter.New(time.Now())
	up := m.Near.Upstream("http://x")
	for i := range 20_000 {
		call(up, fmt.Sprintf("Operation%d", i))
	}
	for i := range 2000 {
		call(up, "Late")
		call(up, fmt.Sprintf("Operation%d", 100+i))
	}
	got := export(t, m)[`hhfr_operation_calls_total{role="near",operation="Late",way="stream"}`]
	var n int
	_, err := fmt.Sscan(got, &n)
	require.NoError(t, err, got)
	assert.Greater(t, n, 1500)
}

// TestNamesOfOperations: whatever a peer names its operations is a label, or counts among others.
func TestNamesOfOperations(t *testing.T) {
	m := meter.New(time.Now())
	up := m.Near.Upstream("http://x/\"\\\n")
	for _, name := range []string{"", "-", "other", "ok", "\xff\xfe", strings.Repeat("x", 1000), "a\"\\\nb", "größe"} {
		call(up, name)
		call(up, name)
	}
	for _, name := range []string{"a\x1b[31mx", "a\u009b", "\x7f", "a\u202eb", "\u2028", "a\u200bb", "\ufeffa"} {
		call(up, name)
	}
	series := export(t, m)
	for one := range series {
		assert.NotRegexp(t, `[^\n\PC]|[\p{Zl}\p{Zp}]`, one, "nothing that a terminal obeys")
	}
	for name, n := range map[string]string{"-": "4", "other": "13", "ok": "2", `a\"\\\nb`: "2", "größe": "2"} {
		assert.Equal(t, n, series[`hhfr_operation_calls_total{role="near",operation="`+name+`",way="stream"}`], name)
	}
	assert.Equal(t, "23", series[`hhfr_calls_total{role="near",upstream="http://x/\"\\\n",way="stream"}`])
}
