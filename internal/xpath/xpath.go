// Package xpath evaluates XPath 1.0 over messages, by github.com/antchfx/xpath, within bounds: of
// the document, and of the steps that an expression takes in it.
package xpath

import (
	"errors"
	"fmt"
	"math"

	"github.com/antchfx/xpath"

	"github.com/hhfr/hhfr/internal/xmltree"
)

const (
	maxLength = 4096
	// maxSteps is how many nodes an expression may come by in one document.
	maxSteps = 2_000_000
)

// XPath is an expression that was compiled. It is not safe for concurrent use.
type XPath struct{ compiled *xpath.Expr }

// Compile compiles an expression. Names in it are local names, of any namespace; there are no
// prefixes and no variables.
func Compile(text string) (e *XPath, err error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("an expression of more than %d bytes", maxLength)
	}
	defer func() {
		if r := recover(); r != nil { // the library panics for some that it cannot compile
			e, err = nil, fmt.Errorf("it cannot be compiled: %v", r)
		}
	}()
	compiled, err := xpath.CompileWithNS(text, map[string]string{})
	if err != nil {
		return nil, err
	}
	return &XPath{compiled}, nil
}

// ErrSteps: an expression takes too long in a document.
var ErrSteps = errors.New("the expression takes too many steps in this message")

// Holds reports whether an expression is true for a document, as XPath's function boolean says it:
// a node is selected, a number is not 0, a text not empty. Errors: the document is not well-formed,
// or has a document type declaration; [ErrSteps].
func (e *XPath) Holds(doc []byte) (holds bool, err error) {
	t, err := xmltree.Parse(doc)
	if err != nil {
		return false, err
	}
	defer recovered(&err)
	switch v := e.compiled.Evaluate(newNavigator(t)).(type) {
	case bool:
		return v, nil
	case float64:
		return v != 0 && !math.IsNaN(v), nil
	case string:
		return v != "", nil
	case *xpath.NodeIterator:
		return v.MoveNext(), nil
	default:
		return false, fmt.Errorf("it gives a %T", v)
	}
}

// Selected is a node of a tree, or an attribute of one.
type Selected struct {
	Node int
	Attr int // its index; -1: the node itself
}

// Select lists what an expression selects in a tree; nothing if it selects no nodes. Error:
// [ErrSteps].
func (e *XPath) Select(t *xmltree.ParsedDocument) (list []Selected, err error) {
	defer recovered(&err)
	found, ok := e.compiled.Evaluate(newNavigator(t)).(*xpath.NodeIterator)
	for ok && found.MoveNext() {
		v := found.Current().(*navigator)
		list = append(list, Selected{v.at, v.attr})
	}
	return list, nil
}

// recovered makes an error of what ends an evaluation.
func recovered(err *error) {
	switch r := recover(); {
	case r == nil:
	case r == any(errSteps):
		*err = ErrSteps
	default: // the library panics for some documents
		*err = fmt.Errorf("it cannot be evaluated: %v", r)
	}
}
