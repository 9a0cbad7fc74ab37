package experiment

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// confidence is that of intervals.
const confidence = 0.95

// Median returns the median of repeats, and an interval that has the median of all such runs in it
// with a confidence of 95 % at least, by order statistics: whatever their distribution is. Below
// six repeats there is no such interval, and low and high are the least and the most.
func Median(repeats []float64) (mid, low, high float64) {
	if len(repeats) == 0 {
		return 0, 0, 0
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(repeats), &benchmath.DefaultThresholds),
		confidence)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		return s.Center, slices.Min(repeats), slices.Max(repeats)
	}
	return s.Center, s.Lo, s.Hi
}

// Differ reports how probable it is that the repeats of two runs differ as they do although nothing
// is different (Mann and Whitney's U test), and whether that is little: at most 5 %.
func Differ(a, b []float64) (p float64, significant bool) {
	if len(a) == 0 || len(b) == 0 {
		return 1, false
	}
	c := benchmath.AssumeNothing.Compare(
		benchmath.NewSample(slices.Clone(a), &benchmath.DefaultThresholds),
		benchmath.NewSample(slices.Clone(b), &benchmath.DefaultThresholds))
	return c.P, c.P <= 1-confidence
}
