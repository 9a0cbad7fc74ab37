package layers_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// largestCircle is the number of files of a package that all refer to each other, directly or by
// others: 1 if its files have an order.
func largestCircle(t *testing.T, importPath string, sources, exported map[string]string) (largest int) {
	t.Helper()
	refers := map[string][]string{}
	for pair := range references(t, importPath, sources, exported) {
		refers[pair[0]] = append(refers[pair[0]], pair[1])
	}
	reached := map[string]map[string]bool{}
	for from := range sources {
		reached[from] = map[string]bool{from: true}
		for open := []string{from}; len(open) > 0; {
			next := open[len(open)-1]
			open = open[:len(open)-1]
			for _, to := range refers[next] {
				if !reached[from][to] {
					reached[from][to] = true
					open = append(open, to)
				}
			}
		}
	}
	for from, all := range reached {
		n := 0
		for to := range all {
			if reached[to][from] {
				n++
			}
		}
		largest = max(largest, n)
	}
	return largest
}

func TestLargestCircle(t *testing.T) {
	sources := map[string]string{
		"a": "package p\nfunc a() { b() }",
		"b": "package p\nfunc b() { c() }",
		"c": "package p\nfunc c() { a(); d() }",
		"d": "package p\nfunc d() { e() }",
		"e": "package p\nfunc e() {}",
	}
	assert.Equal(t, 3, largestCircle(t, "p", sources, nil))
	sources["c"] = "package p\nfunc c() { d() }"
	assert.Equal(t, 1, largestCircle(t, "p", sources, nil))
	pairs := references(t, "p", sources, nil)
	assert.Len(t, pairs, 4)
	assert.True(t, slices.Equal(pairs[[2]string{"c", "d"}], []string{"d"}))
}
