package capture

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/transit"
)

// TestNamesOfSyncs: eight octets find a shape in capture or store; where two have them, none is found.
func TestNamesOfSyncs(t *testing.T) {
	learned, err := shape.Learn([]byte("<a>1</a>"))
	if !assert.NoError(t, err) {
		return
	}
	fp := learned.Fingerprint()
	n := named{name: transit.NameOf(fp)}
	store := memory.New(memory.Config{})
	j := func(seen map[[32]byte][]byte) *joiner {
		return &joiner{store: store, seen: seen, programs: map[[32]byte]*shape.Program{}, names: map[transit.Name]named{}}
	}
	assert.Nil(t, j(nil).program(t.Context(), n))
	assert.Contains(t, n.uri(), shape.URIPrefix)
	assert.NotNil(t, j(map[[32]byte][]byte{fp: learned.Octets()}).program(t.Context(), n))

	_, err = ctxstore.Shapes{Store: store}.Put(t.Context(), learned.Octets())
	assert.NoError(t, err)
	both := j(map[[32]byte][]byte{fp: learned.Octets()})
	assert.NotNil(t, both.program(t.Context(), n))
	assert.NotNil(t, both.program(t.Context(), n), "found before")

	other := fp
	other[31]++
	assert.Nil(t, j(map[[32]byte][]byte{fp: learned.Octets(), other: []byte("other")}).program(t.Context(), n))
	assert.NoError(t, store.Close())
}
