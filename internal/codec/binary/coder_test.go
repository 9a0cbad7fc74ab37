package binary_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/wire"
)

func TestStages(t *testing.T) {
	for without, stages := range map[uint64]uint64{
		0:                        allStages,
		wire.Zstd:                wire.Columns | wire.Memory,
		wire.Memory:              wire.Columns | wire.Zstd | wire.Plain,
		wire.Memory | wire.Zstd:  wire.Columns,
		wire.Columns:             wire.Zstd | wire.Plain,
		wire.Plain:               wire.Columns | wire.Memory | wire.Zstd,
		wire.Columns | wire.Zstd: 0,
		allStages:                0,
	} {
		assert.Equal(t, stages, newEnd(binary.Options{Without: without}).coder.Stages())
		e := newEnd(binary.Options{})
		e.book.Without = without
		assert.Equal(t, stages, e.book.Coder(binary.Options{}).Stages(), "what a book is without, its coders are")
	}
	assert.Zero(t, newEnd(binary.Options{Text: true}).coder.Stages())
}

func TestReferencesWhereThePeerKnows(t *testing.T) {
	a, b := newEnd(announcing), newEnd(announcing)
	there, back := between(t, a, b, limits), between(t, b, a, limits)
	m := enveloped("<a><b>text</b><c d='1'/></a>")
	there.carry(t, m)
	back.carry(t, m)
	assert.Positive(t, there.full)
	assert.Zero(t, back.full, "the way back refers to the shape that came")
	assert.Equal(t, 1, back.references)

	fps := a.book.Known(10)
	require.Len(t, fps, 1)
	a.coder = a.book.Coder(binary.Options{PeerKnows: fps, Without: wire.Plain})
	later := between(t, a, newEnd(announcing), limits)
	later.carry(t, m)
	assert.Equal(t, 1, later.references)
	assert.Positive(t, later.full, "the peer forgot: it says so and gets the shape in full")

	a.coder = a.book.Coder(binary.Options{Refer: true, Without: wire.Plain})
	b.coder = b.book.Coder(announcing)
	stored := between(t, a, b, limits)
	stored.carry(t, m)
	assert.Equal(t, 1, stored.references, "whoever reads has the store")
	assert.Zero(t, stored.full)
}

// TestShapesThatTheStoreForgot: what a stream carried once is there for it as long as its table
// has room, also when book and store have forgotten it, and can still be told in full.
func TestShapesThatTheStoreForgot(t *testing.T) {
	few := limits
	few.MaxShapes = 4
	d := between(t, newEnd(binary.Options{}), newEnd(binary.Options{MaxShapes: 20}), few)
	forget := func(e *end) {
		for i := range 5000 { // more than a book has
			s, err := learn.FromMessage(fmt.Appendf(nil, "<other%d/>", i))
			require.NoError(t, err)
			_, err = e.book.Keep(s)
			require.NoError(t, err)
		}
		clear(e.store.octets)
	}
	kinds := func() {
		for i := range 8 {
			d.carry(t, enveloped(fmt.Sprintf("<a><b%d>1</b%d></a>", i, i)))
			for range 3 {
				d.sync(t)
			}
		}
	}
	kinds()
	full, references := d.full, d.references
	forget(d.to)
	kinds()
	assert.Equal(t, full, d.full, "nothing is sent in full again")
	assert.Equal(t, references+8, d.references)
}

// TestWhatAStreamCarriedIsBounded: beyond the bounds of a coder, what was carried longest ago is
// forgotten with book and store.
func TestWhatAStreamCarriedIsBounded(t *testing.T) {
	e := newEnd(binary.Options{MaxShapes: 3})
	e.store.broken = true
	var fps []shape.Fingerprint
	for i := range 5 {
		s, err := learn.FromMessage(fmt.Appendf(nil, "<kind%d>1</kind%d>", i, i))
		require.NoError(t, err)
		require.NotNil(t, e.coder.Keep(s), "what a stream needs is kept in memory")
		fps = append(fps, s.Fingerprint())
	}
	for i := range 5000 {
		s, err := learn.FromMessage(fmt.Appendf(nil, "<other%d/>", i))
		require.NoError(t, err)
		require.NotNil(t, e.book.Coder(binary.Options{}).Keep(s))
	}
	for i, fp := range fps {
		assert.Equal(t, i >= 2, e.coder.Find(fp) != nil, "shape %d", i)
		has, sure := e.coder.Has(fp)
		assert.True(t, has && sure, "the peer sent it")
	}
}
