package load

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hhfr/hhfr/internal/experiment"
)

// Response times are counted in microseconds, to three digits, up to a day.
const (
	maxMicros = 24 * 3600 * 1000 * 1000
	digits    = 3
)

// rowTally counts what becomes of the requests of a row. It is safe for concurrent use.
type rowTally struct {
	begun time.Time

	mu        sync.Mutex
	row       experiment.LoadRow
	times     *hdrhistogram.Histogram
	sum       time.Duration // of response times
	longest   time.Duration
	workedSum time.Duration
	workedN   int64
}

func newRowTally(row experiment.LoadRow, begun time.Time) *rowTally {
	row.Errors, row.Examples = map[string]int64{}, map[string]string{}
	return &rowTally{begun: begun, row: row, times: hdrhistogram.New(1, maxMicros, digits)}
}

// add counts a request that was to be sent at a time, and has ended.
func (t *rowTally) add(intended, ended time.Time, q *question, a answered, err error) {
	kind, text := outcome(q, a, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Responses++
	second := t.second(int(ended.Sub(t.begun) / time.Second))
	if kind != "" {
		t.row.Errors[kind]++
		if _, ok := t.row.Examples[kind]; !ok {
			t.row.Examples[kind] = text
		}
		if second.Errors == nil {
			second.Errors = map[string]int64{}
		}
		second.Errors[kind]++
		return
	}
	second.Successful++
	t.row.Successful++
	took := ended.Sub(intended)
	t.sum += took
	t.longest = max(t.longest, took)
	_ = t.times.RecordValue(min(max(took.Microseconds(), 1), maxMicros)) // which is in its range
	if a.worked >= 0 {
		t.workedSum += a.worked
		t.workedN++
	}
}

// second is the record of a second from the start.
func (t *rowTally) second(at int) *experiment.Second {
	for len(t.row.Course) <= at {
		t.row.Course = append(t.row.Course, experiment.Second{At: len(t.row.Course)})
	}
	return &t.row.Course[at]
}

// late counts a request that is sent later than it was to be, and unsent one that is not sent.
func (t *rowTally) late() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Late++
}

func (t *rowTally) unsent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row.Unsent++
}

// result is the row, once all requests have ended, after a time.
func (t *rowTally) result(took time.Duration) experiment.LoadRow {
	r := t.row
	r.Seconds, r.ServerMillis = took.Seconds(), -1
	if t.workedN > 0 {
		r.ServerMillis = millis(t.workedSum) / float64(t.workedN)
	}
	if r.Successful > 0 {
		r.MeanMillis = millis(t.sum) / float64(r.Successful)
		r.MaxMillis = millis(t.longest)
	}
	for _, bar := range t.times.Distribution() {
		if bar.Count > 0 {
			r.Histogram = append(r.Histogram, experiment.Bar{Millis: float64(bar.To) / 1000, Count: bar.Count})
		}
	}
	quantiles(&r)
	return r
}

// quantiles are the response times that parts of the requests that succeeded did not exceed: the
// least time of the histogram with at least that part at or below it.
func quantiles(r *experiment.LoadRow) {
	for _, q := range []struct {
		part float64
		to   *float64
	}{{0.5, &r.P50Millis}, {0.9, &r.P90Millis}, {0.99, &r.P99Millis}, {0.999, &r.P999Millis}} {
		all, below := int64(0), int64(0)
		for _, bar := range r.Histogram {
			all += bar.Count
		}
		for _, bar := range r.Histogram {
			*q.to = min(bar.Millis, r.MaxMillis)
			if below += bar.Count; float64(below) >= q.part*float64(all) {
				break
			}
		}
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Together is the row of all requests of several repeats. The first row says of what, Repeat how
// many there were.
func Together(rows []experiment.LoadRow) experiment.LoadRow {
	t := newRowTally(rows[0], time.Time{})
	a, times, computed := &t.row, map[float64]int64{}, 0.0
	a.Histogram, a.Course, a.Doubt, a.Repeat = nil, nil, "", len(rows)
	a.Seconds, a.Responses, a.Successful, a.Unsent, a.Late, a.SentOctets, a.ReceivedOctets = 0, 0, 0, 0, 0, 0, 0
	a.MaxMillis, a.MeanMillis, a.ServerMillis = 0, 0, 0
	for i := range rows {
		r := &rows[i]
		a.Seconds += r.Seconds
		a.Responses += r.Responses
		a.Successful += r.Successful
		a.Unsent += r.Unsent
		a.Late += r.Late
		a.SentOctets += r.SentOctets
		a.ReceivedOctets += r.ReceivedOctets
		computed += r.GeneratorShare * r.Seconds
		a.MeanMillis += r.MeanMillis * float64(r.Successful)
		a.ServerMillis += r.ServerMillis * float64(r.Successful)
		a.MaxMillis = max(a.MaxMillis, r.MaxMillis)
		a.Doubt = joined(a.Doubt, r.Doubt)
		addAll(a.Errors, r.Errors)
		for kind, text := range r.Examples {
			if a.Examples[kind] == "" {
				a.Examples[kind] = text
			}
		}
		for _, s := range r.Course {
			second := t.second(s.At)
			second.Successful += s.Successful
			if len(s.Errors) > 0 && second.Errors == nil {
				second.Errors = map[string]int64{}
			}
			addAll(second.Errors, s.Errors)
		}
		for _, bar := range r.Histogram {
			times[bar.Millis] += bar.Count
		}
	}
	if a.GeneratorShare = 0; a.Seconds > 0 {
		a.GeneratorShare = computed / a.Seconds
	}
	if a.Successful > 0 {
		a.MeanMillis /= float64(a.Successful)
		a.ServerMillis /= float64(a.Successful)
	}
	for _, ms := range slices.Sorted(maps.Keys(times)) {
		a.Histogram = append(a.Histogram, experiment.Bar{Millis: ms, Count: times[ms]})
	}
	quantiles(a)
	return *a
}

func addAll(to, more map[string]int64) {
	for kind, n := range more {
		to[kind] += n
	}
}

// joined adds a doubt, unless it is there.
func joined(doubts, doubt string) string {
	switch {
	case doubt == "" || doubts == doubt:
		return doubts
	case doubts == "":
		return doubt
	}
	return doubts + "; " + doubt
}
