package capture

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Exchanges get their numbers when they are first seen. Those of one lane are in the order of their
// exchanges, also where they come out of order, and those that were not seen keep theirs.
func TestNumbers(t *testing.T) {
	var n numbers
	var a, b sequence
	assert.Equal(t, 1, n.of(&a, 1))
	assert.Equal(t, 2, n.of(&a, 2))
	assert.Equal(t, 3, n.of(&b, 1))
	assert.Equal(t, 6, n.of(&a, 5), "3 and 4 were not seen")
	assert.Equal(t, 4, n.of(&a, 3), "but come later")
	assert.Equal(t, 5, n.of(&a, 4))
	assert.Equal(t, 7, n.of(&b, 2))
	for exchange, number := range map[uint64]int{1: 1, 2: 2, 3: 4, 4: 5, 5: 6} {
		assert.Equal(t, number, n.of(&a, exchange), "its reply")
	}
	assert.Equal(t, 7+maxHole+1, n.of(&a, 1<<62), "a hole is bounded")
	assert.Equal(t, 7+maxHole+2, n.next())
}

// The stored numbers are bounded, however lanes are mixed, and right for recent exchanges.
func TestNumbersAreBounded(t *testing.T) {
	var n numbers
	lanes := make([]sequence, 5)
	next := make([]uint64, len(lanes))
	given := map[[2]uint64]int{}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		lane := rnd.Uint64N(uint64(len(lanes)))
		next[lane]++
		given[[2]uint64{lane, next[lane]}] = n.of(&lanes[lane], next[lane])
		if back := rnd.Uint64N(100); next[lane] > back {
			k := [2]uint64{lane, next[lane] - back}
			if got := n.of(&lanes[lane], k[1]); got != given[k] {
				t.Fatalf("%v is %d, and was %d", k, got, given[k])
			}
		}
	}
	assert.Equal(t, 100_000, n.last)
	for i := range lanes {
		assert.LessOrEqual(t, len(lanes[i].runs), maxRuns)
	}
}
