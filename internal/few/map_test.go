package few_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/few"
)

// A map does what a map does, however many entries it has and had, also when entries are deleted
// while they are listed.
func TestMapsAreMaps(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, keys := range []int{1, 7, 8, 9, 40} {
		var m few.Map[int, int]
		want := map[int]int{}
		for range 3000 {
			key := rnd.IntN(keys)
			switch rnd.IntN(8) {
			case 0, 1, 2:
				value := rnd.Int()
				m.Put(key, value)
				want[key] = value
			case 3, 4:
				m.Delete(key)
				delete(want, key)
			case 5:
				m.Rest()
			case 6:
				for k := range m.All {
					if k%3 == key%3 {
						m.Delete(k)
						delete(want, k)
					}
				}
			}
			value, ok := m.Find(key)
			had, has := want[key]
			require.Equal(t, has, ok)
			require.Equal(t, had, value)
			require.Equal(t, had, m.Get(key))
			require.Equal(t, len(want), m.Len())
			require.Equal(t, want, maps.Collect(m.All))
		}
	}
}

// A map of few entries takes one piece of memory, and an empty one that rests none.
func TestFewEntriesTakeLittle(t *testing.T) {
	var m few.Map[[32]byte, *int]
	assert.Equal(t, 1., testing.AllocsPerRun(100, func() {
		m.Put([32]byte{1}, new(int))
		m.Delete([32]byte{1})
	}), "the value")
	assert.Equal(t, 1., testing.AllocsPerRun(100, func() {
		m.Put([32]byte{1}, nil)
		m.Delete([32]byte{1})
		m.Rest()
	}))
}
