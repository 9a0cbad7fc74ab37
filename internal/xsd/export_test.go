package xsd

import (
	"crypto/sha256"
)

// Fingerprint is that of elements in a Body.
func Fingerprint(elements ...*ElementDecl) [sha256.Size]byte {
	return Prints(&Contents{Body: elements})[0].Fingerprint
}

// Difference is [Contents.Difference] for elements.
func Difference(a, b *ElementDecl) string {
	return (&Contents{Body: []*ElementDecl{a}}).Difference(&Contents{Body: []*ElementDecl{b}})
}
