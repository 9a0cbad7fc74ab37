package xsd

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// Misfit is where a message is not as its schema says.
type Misfit struct {
	Place Position
	// Path leads to the element, by names.
	Path string
	What string
}

// String is the place, the path, and what is wrong.
func (m Misfit) String() string { return fmt.Sprintf("%s: %s: %s", m.Place, m.Path, m.What) }

// maxMisfits is how many are reported of one message.
const maxMisfits = 32

// Check compares an element of a message, read by [ParseMessage], with its declaration.
func (s *Set) Check(e *ElementDecl, n *DocumentNode) []Misfit {
	c := contentChecker{set: s}
	c.element(e, n, n.Name.Local)
	c.sort()
	return c.found
}

// sort orders what was found as it stands in the message.
func (c *contentChecker) sort() {
	slices.SortStableFunc(c.found, func(a, b Misfit) int {
		return cmp.Or(cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column))
	})
}

type contentChecker struct {
	set   *Set
	found []Misfit
}

func (c *contentChecker) fail(n *DocumentNode, path, format string, args ...any) {
	if len(c.found) < maxMisfits {
		c.found = append(c.found, Misfit{n.Place, path, fmt.Sprintf(format, args...)})
	}
}

func (c *contentChecker) element(e *ElementDecl, n *DocumentNode, path string) {
	t := c.typeOf(e, n, path)
	if n.isNil() {
		switch {
		case !e.Nillable:
			c.fail(n, path, "nil, and not nillable")
		case len(n.Children) > 0 || strings.TrimSpace(n.Text) != "":
			c.fail(n, path, "nil, and not empty")
		}
		if t != nil && !t.Any {
			c.attributes(t, n, path)
		}
		return
	}
	if t == nil {
		return
	}
	if t.Any {
		for _, kid := range n.Children {
			c.wild("lax", kid, path)
		}
		return
	}
	c.attributes(t, n, path)
	if t.Simple != nil {
		c.text(t.Simple, e, n, path)
		return
	}
	switch isArray := t.Array != nil && t.Particle == nil; {
	case t.Mixed:
	case strings.TrimSpace(n.Text) != "":
		c.fail(n, path, "text %.40q between elements", strings.TrimSpace(n.Text))
	case n.Text != "" && t.isEmpty() && !isArray && len(n.Children) == 0:
		c.fail(n, path, "white space, where nothing may be")
	}
	if t.Array != nil && t.Particle == nil {
		c.items(t, n, path)
		return
	}
	c.content(t, n, path)
}

// typeOf is the declared type, or the one that xsi:type names.
func (c *contentChecker) typeOf(e *ElementDecl, n *DocumentNode, path string) *TypeDef {
	text, named := n.getName(QName{xmlns.XSI, "type"})
	if !named {
		if e.Type != nil && e.Type.Abstract {
			c.fail(n, path, "its type is abstract: xsi:type is needed")
			return nil
		}
		return e.Type
	}
	name, ok := n.QName(text)
	t := c.set.Type(name)
	if !ok || t == nil {
		c.fail(n, path, "xsi:type %q is no type", text)
		return nil
	}
	if t.Abstract {
		c.fail(n, path, "xsi:type %s is abstract", name)
		return nil
	}
	for base := t; base != e.Type && e.Type != nil && !e.Type.Any; base = base.Base {
		if base == nil || base.Any || base.Base == base {
			if e.Type.Simple == nil || t.Simple == nil { // SOAP's encoding names simple types of its own
				c.fail(n, path, "xsi:type %s is not derived from its type", name)
			}
			return t
		}
	}
	if ways, _ := c.set.since(t, e.Type); ways&e.blocks() != 0 {
		c.fail(n, path, "xsi:type %s is derived by %s, which is blocked", name, ways&e.blocks())
	}
	return t
}

func (n *DocumentNode) isNil() bool {
	v, _ := n.getName(QName{xmlns.XSI, "nil"})
	return isTrue(strings.TrimSpace(v))
}

func (n *DocumentNode) getName(name QName) (string, bool) {
	for i := range n.Attrs {
		if n.Attrs[i].Name == name {
			return n.Attrs[i].Value, true
		}
	}
	return "", false
}

func (c *contentChecker) text(s *Simple, e *ElementDecl, n *DocumentNode, path string) {
	if len(n.Children) > 0 {
		c.fail(n.Children[0], path, "%s inside a value", n.Children[0].Name)
		return
	}
	text := n.Text
	if text == "" && e.Default != nil {
		text = *e.Default
	}
	if why := s.Check(text); why != "" {
		c.fail(n, path, "%s", why)
	}
	if e.Fixed != nil && n.Text != "" && s.normalize(n.Text) != s.normalize(*e.Fixed) {
		c.fail(n, path, "%.40q, and it is always %.40q", n.Text, *e.Fixed)
	}
}

func (c *contentChecker) attributes(t *TypeDef, n *DocumentNode, path string) {
	for _, a := range t.Attributes {
		v, there := n.getName(a.Name)
		switch {
		case !there && a.Required:
			c.fail(n, path, "the attribute %s is missing", a.Name)
		case !there:
		case a.Fixed != nil && a.Type.normalize(v) != a.Type.normalize(*a.Fixed):
			c.fail(n, path, "%s is %.40q, and always %.40q", a.Name, v, *a.Fixed)
		default:
			if why := a.Type.Check(v); why != "" {
				c.fail(n, path, "%s: %s", a.Name, why)
			}
		}
	}
	for _, a := range n.Attrs {
		_, known := t.find(a.Name)
		switch {
		case known, a.Name.Space == xmlns.XSI:
		case t.AnyAttribute == nil || !t.AnyAttribute.Allows(a.Name.Space):
			c.fail(n, path, "the attribute %s is not declared", a.Name)
		case t.AnyAttribute.Process != "skip":
			c.wildAttribute(t.AnyAttribute.Process, a, n, path)
		}
	}
}

// items compares the items of an array that says no more of them than their type and their number:
// they have any name, and all the same.
func (c *contentChecker) items(t *TypeDef, n *DocumentNode, path string) {
	want, err := strconv.Atoi(strings.Trim(t.Dimensions, "[]"))
	if err == nil && len(n.Children) != want {
		c.fail(n, path, "%d items, where there are always %d", len(n.Children), want)
	}
	for _, kid := range n.Children {
		if first := n.Children[0].Name; kid.Name != first {
			c.fail(kid, path, "%s, where %s is expected", kid.Name, first)
			continue
		}
		c.element(&ElementDecl{Name: kid.Name, Type: t.Array}, kid, path+"/"+kid.Name.Local)
	}
}

// wildAttribute compares an attribute that a wildcard allows with its global declaration.
func (c *contentChecker) wildAttribute(process string, a DocumentAttr, n *DocumentNode, path string) {
	s := c.set.attributeNamed(a.Name)
	switch {
	case s == nil && process == "strict":
		c.fail(n, path, "the attribute %s is not declared, as any other here must be", a.Name)
	case s == nil:
	default:
		if why := s.Check(a.Value); why != "" {
			c.fail(n, path, "%s: %s", a.Name, why)
		}
	}
}

// wild compares an element that a wildcard allows with its global declaration.
func (c *contentChecker) wild(process string, n *DocumentNode, path string) {
	path += "/" + n.Name.Local
	e := c.set.Element(n.Name)
	_, typed := n.getName(QName{xmlns.XSI, "type"})
	switch {
	case process == "skip":
	case e != nil:
		c.element(e, n, path)
	case typed:
		c.element(&ElementDecl{Name: n.Name, Type: c.set.anything()}, n, path)
	case process == "strict":
		c.fail(n, path, "%s is not declared, as any element here must be", n.Name)
	default:
		for _, kid := range n.Children {
			c.wild(process, kid, path)
		}
	}
}
