package soap

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An element is written as the tree of a document is, byte by byte, whatever stands in it.
func TestElementsAreWrittenAsTrees(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"", "a", "name", "urn:a", "urn:b", "&", "<", ">", "]]>", `"`, "'", "\t", "\n", "\r", "\r\n",
		" ", "\x00", "\x1f", "\x7f", "é", "\u2028", "\uFFFD", "\uFFFE", "\U0001F600", "\xff", "\xed\xa0\x80"}
	text := func() (s string) {
		for range rnd.IntN(4) {
			s += pieces[rnd.IntN(len(pieces))]
		}
		return s
	}
	var element func(depth int) Element
	element = func(depth int) Element {
		e := Element{Name: Name{[]string{"", "urn:a", "urn:b&'", "urn:c"}[rnd.IntN(4)], "el"}, Text: text()}
		for _, name := range []string{"a", "b", "p:c"}[:rnd.IntN(4)] {
			e.Attrs = append(e.Attrs, Attr{Name: name, Value: text()})
		}
		for range rnd.IntN(depth + 1) {
			e.Children = append(e.Children, element(depth-1))
		}
		return e
	}
	for range 2000 {
		e := element(3)
		doc := newDocument()
		addAll(&doc.Element, []Element{e}, None, "")
		want, err := doc.WriteToBytes()
		require.NoError(t, err)
		got, err := BuildElement(&e)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
}

// What many sessions of a server have is written into one piece of memory.
func TestAnElementTakesOnePieceOfMemory(t *testing.T) {
	e := Element{Name: Name{"urn:a", "Session"}, Children: []Element{{Name: Name{"urn:a", "Path"}, Text: "/a&b"}}}
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = BuildElement(&e) }), 1.)
}
