//go:build soak

package wire_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestSoakStateOfALane fills lanes with messages of all kinds, with values that were seen or that
// are new, with words as long as are remembered, and of very many kinds of which there is little to
// remember: with ten times as much as there is between two syncs. Eight lanes share what a stream
// has beside them, its table of shapes and what it compresses in, some 28 KB.
func TestSoakStateOfALane(t *testing.T) {
	const lanes, bytes = 2, 12 << 20
	rnd := rand.New(rand.NewPCG(9, 10))
	same := func(m string) string { return m }
	scramble := func(m string) string { return scrambled(rnd, m) }
	real := realMessages(t)
	var small []string
	for i := range 900 {
		small = append(small, fmt.Sprintf("<small><kind%d>of %d</kind%d></small>", i, i, i))
	}
	long := []string{"<long>" + strings.Repeat("<w>"+strings.Repeat("w", 40)+"</w>", 100) + "</long>"}
	t.Run("as they are", func(t *testing.T) { fillLanes(t, real, same, 4*lanes, bytes) })
	t.Run("new values", func(t *testing.T) { fillLanes(t, real, scramble, lanes, bytes) })
	t.Run("long words", func(t *testing.T) { fillLanes(t, append(long, real...), scramble, lanes, bytes/2) })
	t.Run("small kinds", func(t *testing.T) { fillLanes(t, small, scramble, 4*lanes, bytes/16) })
}
