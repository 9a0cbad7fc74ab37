package load

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/experiment"
)

// Threshold is what a row must reach.
type Threshold struct {
	text  string
	of    func(*experiment.LoadRow) float64 // in ms, percent or requests a second
	below bool                              // or above
	equal bool                              // or as much
	limit float64
}

// comparison is a metric, how it compares, and the limit.
var comparison = regexp.MustCompile(`^\s*([a-z0-9]+)\s*([<>])(=?)\s*(\S+)\s*$`)

// times are the metrics that are times.
var times = map[string]func(*experiment.LoadRow) float64{
	"mean": func(r *experiment.LoadRow) float64 { return r.MeanMillis },
	"p50":  func(r *experiment.LoadRow) float64 { return r.P50Millis },
	"p90":  func(r *experiment.LoadRow) float64 { return r.P90Millis },
	"p99":  func(r *experiment.LoadRow) float64 { return r.P99Millis },
	"p999": func(r *experiment.LoadRow) float64 { return r.P999Millis },
	"max":  func(r *experiment.LoadRow) float64 { return r.MaxMillis },
}

// ParseThreshold reads a metric, <, <=, > or >=, and a limit: p50, p90, p99, p999, mean and max
// with a time, errors with a percentage, rate with right answers a second.
func ParseThreshold(text string) (t Threshold, err error) {
	m := comparison.FindStringSubmatch(text)
	if m == nil {
		return t, fmt.Errorf("%.60q: a threshold is as p99<50ms, errors<1%% or rate>100", text)
	}
	t = Threshold{text: text, of: times[m[1]], below: m[2] == "<", equal: m[3] == "="}
	number := m[4]
	switch {
	case t.of != nil:
		d, err := time.ParseDuration(number)
		if err != nil || d < 0 {
			return t, fmt.Errorf("%.60q: %s is a time, as 50ms or 1.5s", text, m[1])
		}
		t.limit = millis(d)
		return t, nil
	case m[1] == "errors":
		var percent bool
		if number, percent = strings.CutSuffix(number, "%"); !percent {
			return t, fmt.Errorf("%.60q: errors are in percent, as 1%%", text)
		}
		t.of = (*experiment.LoadRow).ErrorPercent
	case m[1] == "rate":
		t.of = (*experiment.LoadRow).PerSecond
	default:
		return t, fmt.Errorf("%.60q: there are p50, p90, p99, p999, mean, max, errors and rate", text)
	}
	if t.limit, err = strconv.ParseFloat(number, 64); err != nil || !(t.limit >= 0) {
		return t, fmt.Errorf("%.60q: %.20q is no number from 0", text, number)
	}
	return t, nil
}

// String is what was parsed.
func (t Threshold) String() string { return t.text }

// Missed says what a row has in place of what it must; "": it has that. A time that nothing took,
// since nothing succeeded, is missed.
func (t Threshold) Missed(r *experiment.LoadRow) string {
	v := t.of(r)
	if r.Successful == 0 && t.limit > 0 && t.below && v == 0 {
		return "nothing succeeded"
	}
	if t.equal && v == t.limit || t.below && v < t.limit || !t.below && v > t.limit {
		return ""
	}
	return fmt.Sprintf("%.3f", v)
}
