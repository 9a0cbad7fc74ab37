package meter

import (
	"slices"
	"sync/atomic"
	"time"
)

// bounds are the upper ends of the intervals in which times of calls are counted. Longer ones count
// in one more.
var bounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 25 * time.Second, 50 * time.Second, 100 * time.Second,
}

// times is a histogram.
type times [len(bounds) + 1]atomic.Int64

func (t *times) add(d time.Duration) {
	i, _ := slices.BinarySearch(bounds[:], d)
	t[i].Add(1)
}

// Bucket is how many calls took no longer than a time, which may be endless.
type Bucket struct {
	Seconds float64 `json:"le"`    // the time in seconds; 0: any time
	Calls   int64   `json:"calls"` // that took no longer
}

// buckets are cumulative.
func (t *times) buckets() (list []Bucket) {
	sum := int64(0)
	for i := range t {
		sum += t[i].Load()
		b := Bucket{Calls: sum}
		if i < len(bounds) {
			b.Seconds = bounds[i].Seconds()
		}
		list = append(list, b)
	}
	return list
}
