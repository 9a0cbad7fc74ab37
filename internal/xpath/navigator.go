package xpath

import (
	"errors"

	"github.com/antchfx/xpath"

	"github.com/hhfr/hhfr/internal/xmltree"
)

// treeWalk is a walk through a tree.
type treeWalk struct {
	*xmltree.ParsedDocument
	steps int
}

// errSteps ends an evaluation, as a panic.
var errSteps = errors.New("steps")

func (t *treeWalk) step(n int) {
	if t.steps += n; t.steps > maxSteps {
		panic(errSteps)
	}
}

// value is the text in a node.
func (t *treeWalk) value(at int) string {
	t.step(1)
	if t.Nodes[at].IsText {
		return t.Nodes[at].Text
	}
	var text []byte
	for i := t.Nodes[at].First; i > 0; i = t.After(i, at) {
		t.step(1 + len(t.Nodes[i].Text)>>6)
		text = append(text, t.Nodes[i].Text...)
	}
	return string(text)
}

// noAttr: a navigator is at a node itself.
const noAttr = -1

// navigator is a place in a tree.
type navigator struct {
	walk *treeWalk
	at   int
	attr int // index of an attribute of that element; noAttr: at the element
}

func newNavigator(t *xmltree.ParsedDocument) *navigator {
	return &navigator{walk: &treeWalk{ParsedDocument: t}, attr: noAttr}
}

func (v *navigator) node() *xmltree.TreeNode {
	v.walk.step(1)
	return &v.walk.Nodes[v.at]
}

func (v *navigator) NodeType() xpath.NodeType {
	switch n := v.node(); {
	case v.attr != noAttr:
		return xpath.AttributeNode
	case v.at == 0:
		return xpath.RootNode
	case n.IsText:
		return xpath.TextNode
	}
	return xpath.ElementNode
}

func (v *navigator) LocalName() string {
	n := v.node()
	if v.attr != noAttr {
		return n.Attrs[v.attr].Local
	}
	return n.Local
}

// Prefix is empty, so that names without a prefix are those of any namespace.
func (v *navigator) Prefix() string { return "" }

// NamespaceURL is for the function namespace-uri.
func (v *navigator) NamespaceURL() string {
	n := v.node()
	if v.attr != noAttr {
		return n.Attrs[v.attr].Space
	}
	return n.Space
}

func (v *navigator) Value() string {
	if v.attr != noAttr {
		return v.node().Attrs[v.attr].Value
	}
	return v.walk.value(v.at)
}

func (v *navigator) Copy() xpath.NodeNavigator {
	v.walk.step(1)
	o := *v
	return &o
}

func (v *navigator) MoveToRoot() { v.at, v.attr = 0, noAttr }

func (v *navigator) MoveToParent() bool {
	n := v.node()
	if v.attr != noAttr {
		v.attr = noAttr
		return true
	}
	if v.at == 0 {
		return false
	}
	v.at = n.Up
	return true
}

func (v *navigator) MoveToNextAttribute() bool {
	if v.attr+1 >= len(v.node().Attrs) {
		return false
	}
	v.attr++
	return true
}

// to goes to a node, if there is one.
func (v *navigator) to(at int) bool {
	if at == 0 || v.attr != noAttr {
		return false
	}
	v.at = at
	return true
}

func (v *navigator) MoveToChild() bool    { return v.to(v.node().First) }
func (v *navigator) MoveToNext() bool     { return v.to(v.node().Next) }
func (v *navigator) MoveToPrevious() bool { return v.to(v.node().Before) }

func (v *navigator) MoveToFirst() bool {
	if v.at == 0 {
		return false
	}
	return v.to(v.walk.Nodes[v.node().Up].First)
}

func (v *navigator) MoveTo(to xpath.NodeNavigator) bool {
	o, ok := to.(*navigator)
	if ok {
		v.walk.step(1)
		v.at, v.attr = o.at, o.attr
	}
	return ok
}
