package xsd

import "strings"

// derivations are ways in which a type is derived from another, or an element stands in place of
// another: those that a declaration blocks, or is final for.
type derivations uint8

const (
	byExtension derivations = 1 << iota
	byRestriction
	byList
	byUnion
	bySubstitution

	allDerivations derivations = 1<<iota - 1
	// named are those by which xsi:type may name a type.
	named = byExtension | byRestriction
)

// String has the words of XML Schema.
func (d derivations) String() string {
	var words []string
	for i, word := range derivationWords {
		if d&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, " and ")
}

var derivationWords = []string{"extension", "restriction", "list", "union", "substitution"}
