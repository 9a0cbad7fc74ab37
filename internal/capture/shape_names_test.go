package capture

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// TestNamesOfSyncs: eight bytes find a shape in capture or store; where two have them, none is
// found.
func TestNamesOfSyncs(t *testing.T) {
	learned, err := learn.FromMessage([]byte("<a>1</a>"))
	require.NoError(t, err)
	name := transit.NameOf(learned.Fingerprint())
	store := memory.New(memory.Config{})
	assert.Nil(t, newShapes(t.Context(), nil).named(name))
	assert.Nil(t, newShapes(t.Context(), store).named(name))
	seen := newShapes(t.Context(), store)
	seen.Keep(learned)
	assert.NotNil(t, seen.named(name))

	_, err = ctxstore.Shapes{Store: store}.Put(t.Context(), learned.Octets())
	require.NoError(t, err)
	assert.NotNil(t, newShapes(t.Context(), store).named(name))
	both := newShapes(t.Context(), store)
	both.Keep(learned)
	assert.NotNil(t, both.named(name))
	assert.NotNil(t, both.named(name), "found before")

	other := learned.Fingerprint()
	other[31]++
	both.names[name] = append(both.names[name], other)
	assert.Nil(t, both.named(name), "two that came")
	stored := newShapes(t.Context(), store)
	assert.NotNil(t, stored.named(name))
	stored.index.all = append(stored.index.all, other)
	assert.Nil(t, stored.named(name), "two in the store")
	require.NoError(t, store.Close())
}

// listed is a store that counts how often it is listed.
type listed struct {
	ctxstore.Store
	lists, infos int
}

func (l *listed) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	l.lists++
	return func(yield func(ctxstore.Info, error) bool) {
		for info, err := range l.Store.List(ctx, prefix) {
			if l.infos++; !yield(info, err) {
				return
			}
		}
	}
}

// Names that nobody knows cost a few lists of the store, ten times as many hardly more, and leave
// nothing behind. A shape that comes to the store meanwhile is found.
func TestUnknownNames(t *testing.T) {
	store := &listed{Store: memory.New(memory.Config{})}
	for i := range 100 {
		s, err := learn.FromMessage(fmt.Appendf(nil, "<a%d>1</a%d>", i, i))
		require.NoError(t, err)
		_, err = ctxstore.Shapes{Store: store}.Put(t.Context(), s.Octets())
		require.NoError(t, err)
	}
	late, err := learn.FromMessage([]byte("<late>1</late>"))
	require.NoError(t, err)
	s := newShapes(t.Context(), store)
	for i, most := range map[int]int{5_000: 29, 50_000: 32} {
		for n := range i {
			require.Nil(t, s.named([8]byte{byte(n >> 16), byte(n >> 8), byte(n)}))
		}
		assert.LessOrEqual(t, store.lists, most, "%d names", i)
		assert.LessOrEqual(t, store.infos, 100*store.lists)
		assert.Empty(t, s.names)
		store.lists, store.infos, s = 0, 0, newShapes(t.Context(), store)
	}

	name := transit.NameOf(late.Fingerprint())
	for range 10 {
		require.Nil(t, s.named(name))
	}
	_, err = ctxstore.Shapes{Store: store}.Put(t.Context(), late.Octets())
	require.NoError(t, err)
	assert.NotNil(t, s.named(name))
	require.NoError(t, store.Close())
}

// What references name in vain is remembered, and does not grow without bound.
func TestShapesOfTheStoreAreBounded(t *testing.T) {
	store := memory.New(memory.Config{})
	s := newShapes(t.Context(), store)
	for n := range 3 * maxKept / entryCost {
		require.Nil(t, s.Find(shape.Fingerprint{byte(n >> 16), byte(n >> 8), byte(n), 1}))
	}
	assert.LessOrEqual(t, s.stored.size, maxKept)
	assert.Len(t, s.stored.programs, maxKept/entryCost)
	assert.Len(t, s.stored.order, maxKept/entryCost)
	require.NoError(t, store.Close())
}
