package wsrm

// minRing is how many units a ring has room for at first: most sequences never have more under way, and one that somebody opens for nothing costs little.
const minRing = 64

// ringFor makes room for the positions above done up to last in a ring by position, whose length is a power of two.
func ringFor[T any](ring []T, done, last uint64) []T {
	if last <= done || last-done <= uint64(len(ring)) {
		return ring
	}
	size := len(ring)
	for last-done > uint64(size) {
		size *= 2
	}
	grown := make([]T, size)
	for position := done + 1; position <= done+uint64(len(ring)); position++ {
		grown[position&uint64(size-1)] = ring[position&uint64(len(ring)-1)]
	}
	return grown
}
