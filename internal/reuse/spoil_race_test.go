//go:build race

package reuse_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/reuse"
)

// TestWhoStillReadsIsFoundOut: what was given back is overwritten at once.
func TestWhoStillReadsIsFoundOut(t *testing.T) {
	p := reuse.Buffers{Most: 100}
	b := p.Get(0)
	b.Octets = append(b.Octets, "text"...)
	kept := b.Octets
	p.Put(b)
	assert.NotEqual(t, "text", string(kept))
}
