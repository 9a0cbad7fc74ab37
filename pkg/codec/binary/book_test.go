package binary_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/shape/learn"
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

func TestLoadTriesStoredShapes(t *testing.T) {
	a := newEnd(binary.Options{})
	s, err := learn.FromMessage([]byte("<a><b>1</b></a>"))
	require.NoError(t, err)
	_, err = a.store.Put(t.Context(), s.Octets())
	require.NoError(t, err)
	a.book.Load(t.Context(), []binary.Fingerprint{s.Fingerprint(), {1, 2, 3}})
	assert.Equal(t, []binary.Fingerprint{s.Fingerprint()}, a.book.Known(5))
}

func TestStoreThatFails(t *testing.T) {
	d := newDirection(t, binary.Options{})
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
