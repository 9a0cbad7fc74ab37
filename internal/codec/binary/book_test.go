package binary_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/codec/binary"
)

func TestPrefixesAloneMakeNoNewShape(t *testing.T) {
	d := newDirection(t, binary.Options{})
	for _, p := range [][2]string{{"ns1", "ns2"}, {"a0", "a1"}, {"d4p1", "d5p1"}, {"ns09", "ns10"}, {"q999", "q1000"}} {
		const message = `<P:x xmlns:P="urn:1"><Q:y xmlns:Q="urn:2" ` +
			`xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="P:t">5</Q:y></P:x>`
		d.carry(t, []byte(strings.NewReplacer("P", p[0], "Q", p[1]).Replace(message)))
	}
	assert.Len(t, d.from.store.octets, 1)
}

// TestKnownInTheOrderOfUse: what fitted last stands first, also if others came into the book since
// it fitted before.
func TestKnownInTheOrderOfUse(t *testing.T) {
	d := newDirection(t, binary.Options{})
	one, two := enveloped("<a>1</a>"), enveloped("<b>1</b>")
	d.carry(t, one)
	d.carry(t, one)
	first := d.from.book.Known(1)
	d.carry(t, two)
	assert.NotEqual(t, first, d.from.book.Known(1))
	d.carry(t, one)
	assert.Equal(t, first, d.from.book.Known(1))
	d.carry(t, two)
	d.carry(t, two)
	assert.NotEqual(t, first, d.from.book.Known(1))
	assert.Len(t, d.from.book.Known(9), 2)
}

func TestStoreThatFails(t *testing.T) {
	d := newDirection(t, announcing)
	d.from.store.broken = true
	d.carry(t, enveloped("<a>1</a>"))
	assert.Equal(t, 1, d.texts, "whoever cannot store a shape does not send it")
	assert.Zero(t, d.full)
	d.from.store.broken, d.to.store.broken = false, true
	d.carry(t, enveloped("<a>2</a>"))
	d.carry(t, enveloped("<a>3</a>"))
	assert.Equal(t, 1, d.texts, "what a stream needs is kept in memory")
	assert.Positive(t, d.full)
	assert.Empty(t, d.to.store.octets)
}
