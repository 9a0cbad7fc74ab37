package binary_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/wire"
)

// kind is a message of one of many kinds.
func kind(i int) []byte { return enveloped(fmt.Sprintf("<k%d>1</k%d>", i, i)) }

// knowing are two ends whose stores have the shapes of so many kinds, and whose books have none.
// Both know that the other has them; that of kind 0 was used last.
func knowing(t *testing.T, kinds int) *direction {
	from, to := newEnd(binary.Options{}), newEnd(binary.Options{})
	var known []binary.Fingerprint
	for i := range kinds {
		s, err := learn.FromMessage(kind(i))
		require.NoError(t, err)
		for _, e := range []*end{from, to} {
			_, err = e.store.Put(t.Context(), s.Octets())
			require.NoError(t, err)
		}
		known = append(known, s.Fingerprint())
	}
	slices.Reverse(known)
	for _, e := range []*end{from, to} {
		e.coder = e.book.Coder(binary.Options{PeerKnows: known, Without: wire.Plain})
		e.store.gets = 0
	}
	return between(t, from, to, limits)
}

// What the peer has is read from the store as messages need it: those used last first, everything
// only for a kind that is new, and nothing twice.
func TestWhatThePeerHasIsReadWhenNeeded(t *testing.T) {
	const kinds = 500
	d := knowing(t, kinds)
	gets := &d.from.store.gets
	assert.Zero(t, *gets, "a stream begins without reading any")
	d.carry(t, kind(0))
	assert.Equal(t, 1, d.references)
	assert.LessOrEqual(t, *gets, 16)
	assert.Equal(t, 1, d.to.store.gets, "the peer reads what is referred to")

	before := *gets
	d.carry(t, kind(1))
	assert.Equal(t, before, *gets, "it is at hand")
	d.carry(t, kind(kinds-1))
	assert.Equal(t, 3, d.references)
	assert.Zero(t, d.full, "all were referred to")
	assert.Equal(t, kinds, *gets)

	d.carry(t, kind(kinds))
	assert.Positive(t, d.full)
	d.carry(t, kind(kinds+1))
	d.carry(t, kind(kinds/2))
	assert.Equal(t, kinds, *gets, "each was read once")
}

// A shape that the peer has goes before one in the book that it lacks, also while it is not read
// yet.
func TestWhatThePeerHasGoesBeforeWhatIsAtHand(t *testing.T) {
	d := knowing(t, 100)
	other, err := learn.FromMessage(enveloped("<k90>text</k90>")) // fits kind 90 as well
	require.NoError(t, err)
	_, err = d.from.book.Keep(other)
	require.NoError(t, err)
	d.carry(t, kind(90))
	assert.Equal(t, 1, d.references)
	assert.Zero(t, d.full)
}

// A shape that the store has lost is learned again, and costs nothing but its look-up.
func TestWhatTheStoreLostIsLearnedAgain(t *testing.T) {
	d := knowing(t, 20)
	clear(d.from.store.octets)
	d.carry(t, kind(3))
	assert.Equal(t, 1, d.references, "the peer has it still")
	assert.Equal(t, 20, d.from.store.gets)
	d.carry(t, kind(4))
	assert.Equal(t, 20, d.from.store.gets)
}
