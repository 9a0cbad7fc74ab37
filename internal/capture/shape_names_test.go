package capture

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	both.alike(name).add(other)
	assert.Nil(t, both.named(name))
	require.NoError(t, store.Close())
}
