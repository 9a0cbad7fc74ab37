package schema

import (
	"strconv"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/xsd"
)

// Contents returns what the schema says, as XML Schema has it.
func (s *Schema) Contents() *Contents {
	c := &Contents{Body: []*xsd.ElementDecl{s.root.declaration()}}
	for _, h := range s.headers {
		c.Headers = append(c.Headers, h.declaration())
	}
	return c
}

// declaration is the element of XML Schema: attributes are required, and an array whose items have
// any name is one of SOAP's encoding.
func (e *Element) declaration() *xsd.ElementDecl {
	d := &xsd.ElementDecl{Name: xsd.QName{Space: e.Namespace, Local: e.Name}, Type: &xsd.TypeDef{}}
	switch {
	case e.Array && e.Item == "":
		d.Type.Array, d.Type.Dimensions = &xsd.TypeDef{Simple: simple(e.Type)}, "[]"
		if e.Items > 0 {
			d.Type.Dimensions = "[" + strconv.Itoa(e.Items) + "]"
		}
		return d
	case e.Array:
		item := &xsd.Particle{Kind: xsd.ElementParticle, Max: xsd.Unbounded, Element: &xsd.ElementDecl{
			Name: xsd.QName{Space: e.Namespace, Local: e.Item}, Type: &xsd.TypeDef{Simple: simple(e.Type)},
		}}
		if e.Items > 0 {
			item.Min, item.Max = e.Items, e.Items
		}
		d.Type.Particle = item
		return d
	case e.Leaf():
		d.Type.Simple = simple(e.Type)
		return d
	}
	for _, a := range e.Attributes {
		d.Type.Set(&xsd.AttributeRule{Name: xsd.QName{Local: a.Name}, Type: simple(a.Type), Required: true})
	}
	all := &xsd.Particle{Kind: xsd.Sequence, Min: 1, Max: 1}
	for _, c := range e.Children {
		all.Parts = append(all.Parts, &xsd.Particle{
			Kind: xsd.ElementParticle, Min: 1, Max: 1, Element: c.declaration(),
		})
	}
	d.Type.Particle = all
	return d
}

// simple is a type of the dialect: all are built into XML Schema under the same names.
func simple(t shape.Type) *xsd.Simple { return &xsd.Simple{Variety: xsd.Atomic, Builtin: typeName(t)} }
