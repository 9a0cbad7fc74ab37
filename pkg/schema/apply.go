package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
)

// Shape makes the shape of a message that the schema describes. The text is the message's; types of
// values and lengths of arrays are the schema's. drift reports where the message differs from the
// schema; there the shape is as learned. An error of code Drift means that the message is another
// one; other errors are those of [learn.FromMessage].
func (s *Schema) Shape(message []byte) (made *shape.Shape, drift []*Error, err error) {
	learned, err := learn.FromMessage(message)
	if err != nil {
		return nil, nil, err
	}
	drift, err = s.Check(message)
	if err != nil {
		return nil, nil, err
	}
	made, structural := s.apply(learned, !slices.ContainsFunc(drift, isCount))
	if made == nil {
		return nil, nil, structural[0]
	}
	return made, drift, nil
}

// Apply adds types to a shape that was learned from messages: values get the schema's types, arrays
// its numbers of items. drift reports where the structure differs from the schema. If the Body has
// other content, the shape is nil, and drift gives the reason.
func (s *Schema) Apply(learned *shape.Shape) (typed *shape.Shape, drift []*Error) {
	return s.apply(learned, true)
}

func (s *Schema) apply(learned *shape.Shape, fix bool) (*shape.Shape, []*Error) {
	a := applier{fix: fix}
	root := clone(learned.Root())
	child := bodyChild(root)
	if child == nil || child.local != s.root.Name {
		return nil, []*Error{notThis(s.root.Name)}
	}
	a.element(s.root, child, s.root.Name)
	blocks := headerBlocks(root)
	for _, h := range s.headers {
		if at := slices.IndexFunc(blocks, func(b shapeElement) bool { return b.local == h.Name }); at >= 0 {
			a.element(h, &blocks[at], "Header/"+h.Name)
		}
	}
	made, err := shape.New(root)
	if err != nil {
		return nil, []*Error{{Code: Drift, At: -1, Path: s.root.Name, Err: err}}
	}
	return made, a.drift
}

func notThis(name string) *Error {
	return &Error{Code: Drift, At: -1, What: fmt.Sprintf("the Body's child is not %s", name)}
}

func clone(n *shape.Node) *shape.Node {
	c := *n
	c.Kids = make([]*shape.Node, len(n.Kids))
	for i, k := range n.Kids {
		c.Kids[i] = clone(k)
	}
	return &c
}

// shapeElement is an element of a shape, with the array that it is a row of, if any.
type shapeElement struct {
	local string
	node  *shape.Node
	array *shape.Node
	tight bool // nothing is between it and the tag before
}

// parts lists the elements directly inside a node, in order; for an element with several forms,
// those of all forms.
func parts(n *shape.Node) (found []shapeElement) {
	tight := false
	var look func(k, array *shape.Node)
	look = func(k, array *shape.Node) {
		switch k.Kind {
		case shape.Element:
			found = append(found, shapeElement{localName(k), k, array, tight})
			tight = true
		case shape.Text:
			tight = strings.HasSuffix(k.Text, ">")
		case shape.Array:
			look(k.Kids[0], k)
		case shape.Optional, shape.Sequence, shape.Choice:
			for _, g := range k.Kids {
				look(g, array)
			}
		case shape.Value:
			tight = false
		case shape.Attribute, shape.Slot, shape.Again:
		}
	}
	for _, k := range n.Kids {
		look(k, nil)
	}
	return found
}

// localName reads the local name at the beginning of an element.
func localName(n *shape.Node) string {
	var name strings.Builder
	for _, k := range n.Kids {
		if k.Kind == shape.Slot || k.Kind == shape.Again {
			continue
		}
		if k.Kind != shape.Text {
			break
		}
		end := strings.IndexAny(k.Text, " \t\r\n/>")
		if end >= 0 {
			name.WriteString(k.Text[:end])
			break
		}
		name.WriteString(k.Text)
	}
	s := strings.TrimPrefix(name.String(), "<")
	return s[strings.LastIndexByte(s, ':')+1:]
}

// bodyChild finds the one element inside the Body of an envelope.
func bodyChild(root *shape.Node) *shapeElement {
	for _, p := range envelopeParts(root) {
		if p.local != "Body" {
			continue
		}
		if inside := parts(p.node); len(inside) == 1 && inside[0].array == nil {
			return &inside[0]
		}
	}
	return nil
}

// headerBlocks finds the elements inside the Header of an envelope.
func headerBlocks(root *shape.Node) []shapeElement {
	for _, p := range envelopeParts(root) {
		if p.local == "Header" {
			return parts(p.node)
		}
	}
	return nil
}

// envelopeParts are the elements inside the envelope.
func envelopeParts(root *shape.Node) []shapeElement {
	if root.Kind == shape.Element {
		return parts(root)
	}
	if found := parts(root); len(found) == 1 {
		return parts(found[0].node)
	}
	return nil
}

// applier sets the types of the nodes of a copied shape, in place.
type applier struct {
	fix   bool // arrays get their lengths
	drift []*Error
}

func (a *applier) differs(path, format string, args ...any) {
	if len(a.drift) < maxDrifts {
		a.drift = append(a.drift, &Error{Code: Drift, At: -1, Path: path, What: fmt.Sprintf(format, args...)})
	}
}

func (a *applier) element(e *Element, p *shapeElement, path string) {
	switch {
	case e.Array:
		a.array(e, p, path)
		return
	case e.Leaf():
		a.value(p.node, e.Type, path)
		return
	}
	a.attributes(e, p.node, path)
	found := parts(p.node)
	for _, c := range e.Children {
		at := slices.IndexFunc(found, func(f shapeElement) bool { return f.local == c.Name })
		if at < 0 {
			a.differs(path, "element %s is missing, or out of order", c.Name)
			continue
		}
		for _, f := range found[:at] {
			a.differs(path, "element %s is not described here", f.local)
		}
		f := found[at]
		found = found[at+1:]
		if f.array != nil {
			a.differs(path+"/"+c.Name, "element repeats")
			continue
		}
		a.element(c, &f, path+"/"+c.Name)
	}
	for _, f := range found {
		a.differs(path, "element %s is not described here", f.local)
	}
}

// array sets the types of the items of an array, and fixes their number.
func (a *applier) array(e *Element, p *shapeElement, path string) {
	items := parts(p.node)
	if len(items) != 1 {
		if len(items) > 1 {
			a.differs(path, "items of several names")
		}
		return // an empty array does not show what its items look like
	}
	item := items[0]
	a.value(item.node, e.Type, path+"/"+item.local)
	switch {
	case item.array == nil && e.Items == 1:
	case item.array == nil && item.tight:
		row := *item.node
		*item.node = shape.Node{Kind: shape.Array, Kids: []*shape.Node{&row}}
	case item.array != nil && e.Items > 0 && a.fix:
		item.array.Min, item.array.Max = uint64(e.Items), uint64(e.Items)
	}
}

// value sets the type of the text of an element without elements.
func (a *applier) value(n *shape.Node, t shape.Type, path string) {
	if len(parts(n)) > 0 {
		a.differs(path, "has elements inside where a value of type %s is described", typeName(t))
		return
	}
	eachValue(n.Kids, func(v *shape.Node) { v.Type = t })
}

func (a *applier) attributes(e *Element, n *shape.Node, path string) {
	seen := map[string]bool{}
	for _, k := range n.Kids {
		if k.Kind == shape.Optional {
			k = k.Kids[0]
		}
		if k.Kind != shape.Attribute || k.Kids[0].Kind != shape.Text {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimLeft(k.Kids[0].Text, " \t\r\n"), "=")
		name = strings.TrimSpace(name)
		at := slices.IndexFunc(e.Attributes, func(d Attribute) bool { return d.Name == name })
		switch {
		case at >= 0:
			seen[name] = true
			eachValue(k.Kids, func(v *shape.Node) { v.Type = e.Attributes[at].Type })
		case name == "xmlns" || strings.Contains(name, ":"):
		default:
			a.differs(path, "attribute %.60s is not described", name)
		}
	}
	for _, d := range e.Attributes {
		if !seen[d.Name] {
			a.differs(path, "attribute %s is missing", d.Name)
		}
	}
}

// eachValue visits the values among nodes, except for those of elements and attributes inside and
// those that may hold markup.
func eachValue(nodes []*shape.Node, visit func(*shape.Node)) {
	for _, k := range nodes {
		switch k.Kind {
		case shape.Value:
			if k.Type != shape.TypeOpen {
				visit(k)
			}
		case shape.Sequence, shape.Choice, shape.Optional:
			eachValue(k.Kids, visit)
		case shape.Text, shape.Slot, shape.Again, shape.Element, shape.Attribute, shape.Array:
		}
	}
}
