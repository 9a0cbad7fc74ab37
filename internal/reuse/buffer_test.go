package reuse_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/reuse"
)

// TestBuffersComeEmpty: whatever was in them before, and however much they have room for; one that
// is too large does not come again.
func TestBuffersComeEmpty(t *testing.T) {
	p := reuse.Buffers{Most: 100}
	for range 50 {
		b := p.Get(10)
		assert.Empty(t, b.Octets)
		assert.GreaterOrEqual(t, cap(b.Octets), 10)
		assert.LessOrEqual(t, cap(b.Octets), 100)
		b.Octets = append(b.Octets, bytes.Repeat([]byte("x"), 90)...)
		p.Put(b)
		large := p.Get(1000)
		large.Octets = append(large.Octets[:0], bytes.Repeat([]byte("y"), 1000)...)
		p.Put(large)
		p.Put(nil)
	}
}

// TestSizes: a buffer has room for what is asked, and for a little more than twice that at most,
// whatever came back before.
func TestSizes(t *testing.T) {
	p := reuse.Sizes{{Most: 100}, {Most: 200}, {Most: 400}}
	for n := range 500 {
		for range 2 {
			b := p.Get(n)
			assert.Empty(t, b.Octets)
			assert.GreaterOrEqual(t, cap(b.Octets), n)
			assert.LessOrEqual(t, cap(b.Octets), max(100, 2*n))
			b.Octets = append(b.Octets, bytes.Repeat([]byte("x"), n)...)
			p.Put(b)
			p.Put(nil)
		}
	}
}
