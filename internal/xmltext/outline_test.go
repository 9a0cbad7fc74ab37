package xmltext_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/xmltext"
)

func TestOutline(t *testing.T) {
	for doc, want := range map[string]string{
		`<?xml version="1.0"?><s:E xmlns:s="urn:s"><s:B><m:sum xmlns="urn:m" id="7" x='a &amp; b'>` +
			`<v>1.5</v><v>2</v></m:sum></s:B></s:E>`: "s:E\n  s:B\n    m:sum @id 7 @x a & b\n      v 1.5\n      v 2\n",
		"<a>\n  one\n <b/>two <c>3</c><d></d>\n</a>": "a one\n  b\n  two\n  c 3\n  d\n",
		"<a><![CDATA[<x>]]></a>":                     "a <x>\n",
		"<a><!-- c --><b>1<c/>2</b></a>":             "a\n  b 1\n    c\n    2\n",
		"no markup":                                  "no markup\n",
		"<":                                          "<",
		"":                                           "",
	} {
		assert.Equal(t, want, string(xmltext.Outline([]byte(doc))), doc)
	}
}
