package xsd

import "cmp"

// declaration is a component as it stands in its document.
type declaration struct {
	node  *DocumentNode
	doc   *schemaDocument
	state fillState
	// redefines is the component that it takes the place of; nil: none.
	redefines *declaration
	// wrong is why it cannot be used; nil: it can.
	wrong *Problem
}

type fillState uint8

const (
	untouched fillState = iota
	busy
	done
)

// schemaDocument is a schema element with what applies to all in it.
type schemaDocument struct {
	target                    string
	chameleon                 bool
	qualified, qualifiedAttrs bool
	block, final              derivations // of what says nothing itself
}

func compareNames(a, b QName) int {
	return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Local, b.Local))
}
