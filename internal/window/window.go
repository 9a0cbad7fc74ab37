// Package window is what the engines of reliable sequences share: pkg/wsrm, which has them over
// connections, and internal/arq, which has them over datagrams. A [Sender] keeps what was accepted
// and is not done, a [Filter] filters duplicates, puts units in order and says what arrived, and
// a [Packet] is how they tell each other (docs/wire-format.md, section 12.2). None of them has a
// socket, a clock or a timer: what is sent, when, and what of it is lost, the engine says.
//
// Units are numbered from 1, without gaps, and a unit sent again keeps its number (WS-RM 1.1,
// section 3.7). An acknowledgement says up to where all is done, that is delivered and committed,
// and which units above arrived. What is done stays done. What merely arrived may be lost when the
// receiver crashes: a greater instance takes it back. A nack names a unit that arrived and could
// not be kept (WS-RM 1.1, section 3.9). Memory is bounded by the window and by the bytes held.
package window

// Range is numbers First to Last, both included.
type Range struct{ First, Last uint64 }

const (
	// MaxRanges bounds the ranges, and the nacks, of one acknowledgement.
	MaxRanges = 32
	// MaxNumber keeps sums of numbers and windows within 64 bits.
	MaxNumber = 1<<64 - 1<<20
	// maxInSequence is the greatest number of one sequence (WS-RM 1.1, section 3.7). Beyond it the
	// next sequence begins with 1; here numbers count on.
	maxInSequence = 1<<63 - 1
	// RestoreSkip is how many packet numbers are left out after a crash: more than can be sent
	// between two stored states.
	RestoreSkip = 1 << 20
	// minRing is how many units a ring takes at first: most sequences never have more under way,
	// and one that somebody opens for nothing costs little.
	minRing = 64
)

// ringFor makes a ring by number, whose length is a power of two, take the numbers above done up to
// last.
func ringFor[T any](ring []T, done, last uint64) []T {
	if last <= done || last-done <= uint64(len(ring)) {
		return ring
	}
	size := len(ring)
	for last-done > uint64(size) {
		size *= 2
	}
	return Grown(ring, done, size)
}

// Grown copies a ring by number into one of a greater size, also a power of two.
func Grown[T any](ring []T, done uint64, size int) []T {
	grown := make([]T, size)
	for number := done + 1; number <= done+uint64(len(ring)); number++ {
		grown[number&uint64(size-1)] = ring[number&uint64(len(ring)-1)]
	}
	return grown
}
