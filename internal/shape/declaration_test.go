package shape_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// A shape holds an XML declaration as XML knows it; what else stands where one does is content,
// like any processing instruction.
func TestDeclarationsInShapes(t *testing.T) {
	for text, markup := range map[string]bool{
		`<?xml version="1.0"?>`: true,
		`<?xml version='1.1' encoding='utf-8' standalone='yes' ?>`:        true,
		"<?xml\tversion = \"1.0\"\n encoding=\"ISO-8859-1\"?>":            true,
		`<?xml version="1.0" x="SECRET"?>`:                                false,
		`<?xml version="1.0" encoding="utf-8" x="SECRET"?>`:               false,
		`<?xml version="SECRET"?>`:                                        false,
		`<?xml version="1.0" standalone="SECRET"?>`:                       false,
		`<?xml SECRET="1.0"?>`:                                            false,
		`<?xml SECRET?>`:                                                  false,
		`<?xml version="1.0" encoding="a very SECRET name with blanks"?>`: false,
		`<?xml-stylesheet href="SECRET"?>`:                                false,
	} {
		message := []byte(text + "<a><b>1</b></a>")
		s, err := learn.FromMessage(message)
		require.NoError(t, err, text)
		assert.NotContains(t, string(s.Octets()), "SECRET")
		if markup {
			assert.Contains(t, string(s.Octets()), text)
		}
		p := program.Compile(s)
		again := []byte(text + "<a><b>2</b></a>")
		assert.Equal(t, string(again), string(join(t, p, split(t, p, again, 16384, 0))), text)
	}
}
