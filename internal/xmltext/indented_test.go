package xmltext_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/xmltext"
)

func TestIndented(t *testing.T) {
	for doc, want := range map[string]string{
		``:                          "",
		`<a/>`:                      "<a/>\n",
		`<a>x</a>`:                  "<a>x</a>\n",
		"<a>\n\n<b>x</b>\n</a>":     "<a>\n  <b>x</b>\n</a>\n",
		`<a><b><c/></b><d></d></a>`: "<a>\n  <b>\n    <c/>\n  </b>\n  <d></d>\n</a>\n",
		`<?xml version="1.0"?><a p="q"> x <b>y</b> z </a>`: "<?xml version=\"1.0\"?>\n" +
			"<a p=\"q\">x\n  <b>y</b>\n  z\n</a>\n",
		`<a><!-- c --><b><![CDATA[<x>]]></b></a>`: "<a>\n  <!-- c -->\n  <b><![CDATA[<x>]]></b>\n</a>\n",
		`<a><b></a`: `<a><b></a`,
		`no markup`: "no markup\n",
	} {
		assert.Equal(t, want, string(xmltext.Indented([]byte(doc))), doc)
	}
}

// What nests without bound takes no more than its elements.
func TestIndentedIsBounded(t *testing.T) {
	const depth = 100_000
	doc := strings.Repeat("<a>", depth) + strings.Repeat("</a>", depth)
	assert.Less(t, len(xmltext.Indented([]byte(doc))), 100*2*depth)
}

func FuzzIndented(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0"?><a p="q"> x <b>y</b><![CDATA[z]]><!-- --></a>`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		once := xmltext.Indented(doc)
		assert.Equal(t, string(once), string(xmltext.Indented(once)), "it is stable")
	})
}
