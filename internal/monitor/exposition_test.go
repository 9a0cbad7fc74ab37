package monitor_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exposition is what a text of Prometheus says.
type exposition struct {
	types  map[string]string  // of families with metadata
	values map[string]float64 // by series
	labels map[string]map[string]string
	last   map[string][2]float64 // the bound and the value of a histogram's bucket so far, by its series
}

var (
	metadataLine  = regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	sampleLine    = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (\S+)$`)
	histogramPart = regexp.MustCompile(`_(bucket|sum|count)$`)
	labelPair     = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"`)
)

// parseExposition reads the text format of Prometheus, strictly: the lines of a family stand
// together, HELP before them, with a text, no series occurs twice, what is named a counter is one,
// and of histograms buckets grow up to the count.
func parseExposition(t *testing.T, text string) *exposition {
	t.Helper()
	e := &exposition{types: map[string]string{}, values: map[string]float64{}, labels: map[string]map[string]string{},
		last: map[string][2]float64{}}
	require.True(t, strings.HasSuffix(text, "\n"), "the last line ends")
	family, over, helped := "", map[string]bool{}, map[string]bool{}
	enter := func(name, line string) {
		if name != family {
			require.False(t, over[name], "the lines of a family stand together: %s", line)
			over[family], family = true, name
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			m := metadataLine.FindStringSubmatch(line)
			require.NotNil(t, m, line)
			enter(m[2], line)
			if m[1] == "HELP" {
				require.False(t, helped[m[2]], line)
				helped[m[2]] = true
			} else {
				require.Contains(t, []string{"counter", "gauge", "histogram", "summary"}, m[3], line)
				require.Empty(t, e.types[m[2]], line)
				e.types[m[2]] = m[3]
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		require.NotNil(t, m, line)
		name := m[1]
		base := histogramPart.ReplaceAllString(name, "")
		if e.types[base] == "histogram" || e.types[base] == "summary" {
			name = base
		}
		enter(name, line)
		require.True(t, helped[name], "no HELP before %s", line)
		series := m[1] + m[2]
		_, twice := e.values[series]
		require.False(t, twice, series)
		value, err := strconv.ParseFloat(m[3], 64)
		require.NoError(t, err, line)
		e.values[series], e.labels[series] = value, parseLabels(t, m[2])
		if !strings.HasPrefix(m[1], "hhfr_") {
			continue
		}
		require.NotEmpty(t, e.types[name], "no TYPE before %s", line)
		require.Equal(t, strings.HasSuffix(name, "_total"), e.types[name] == "counter", line)
		require.GreaterOrEqual(t, value, 0.0, line)
		if strings.HasSuffix(m[1], "_bucket") && e.types[name] == "histogram" {
			e.checkBucket(t, series, value)
		}
	}
	return e
}

// checkBucket checks that a bucket has at least what the one before it has, and that the last one
// has the count.
func (e *exposition) checkBucket(t *testing.T, series string, value float64) {
	t.Helper()
	le := e.labels[series]["le"]
	at, err := strconv.ParseFloat(le, 64)
	require.NoError(t, err, series)
	same := strings.Replace(series, `le="`+le+`"`, "", 1)
	if before, ok := e.last[same]; ok {
		require.Greater(t, at, before[0], series)
		require.GreaterOrEqual(t, value, before[1], series)
	}
	e.last[same] = [2]float64{at, value}
}

func parseLabels(t *testing.T, text string) map[string]string {
	t.Helper()
	labels := map[string]string{}
	if text == "" {
		return labels
	}
	rest := text[1 : len(text)-1]
	for rest != "" {
		m := labelPair.FindStringSubmatch(rest)
		require.NotNil(t, m, "%s at %s", text, rest)
		require.NotContains(t, labels, m[1])
		labels[m[1]] = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(m[2])
		if rest = rest[len(m[0]):]; rest != "" {
			require.True(t, strings.HasPrefix(rest, ","), text)
			rest = strings.TrimLeft(rest[1:], " ")
			require.NotEmpty(t, rest, text)
		}
	}
	return labels
}

// sum adds the values of a metric's series that have these labels, each a name and a value.
func (e *exposition) sum(metric string, want ...string) (total float64) {
	for series, value := range e.values {
		name, _, _ := strings.Cut(series, "{")
		fits := name == metric
		for i := 0; i < len(want); i += 2 {
			fits = fits && e.labels[series][want[i]] == want[i+1]
		}
		if fits {
			total += value
		}
	}
	return total
}

// families are the metrics of hhfr, with their types.
func (e *exposition) families() map[string]string {
	own := map[string]string{}
	for name, kind := range e.types {
		if strings.HasPrefix(name, "hhfr_") {
			own[name] = kind
		}
	}
	return own
}
