package typed

import (
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/xsd"
)

// declared is what a type says of an element.
type declared struct {
	s *Contract
	t *xsd.TypeDef // nil: anything
}

func (d declared) Value() (shape.Type, bool) {
	if d.t == nil || d.t.Simple == nil {
		return 0, false
	}
	return typeOf(d.t.Simple), true
}

func (d declared) Attribute(space, local string) (use learn.AttributeUse, known bool) {
	if d.t == nil {
		return use, false
	}
	for _, a := range d.t.Attributes {
		if a.Name == (xsd.QName{Space: space, Local: local}) {
			return learn.AttributeUse{Type: typeOf(a.Type), Required: a.Required}, true
		}
	}
	return use, false
}

func (d declared) Element(space, local string) (learn.Declaration, learn.Occurrence) {
	if d.t == nil {
		return nil, learn.Occurrence{}
	}
	if d.t.Array != nil {
		return declared{d.s, d.t.Array}, learn.Occurrence{Optional: true, Repeats: true}
	}
	c := d.s.content(d.t)
	name := xsd.QName{Space: space, Local: local}
	if p, ok := c.parts[name]; ok {
		return declared{d.s, p.t}, p.occurs
	}
	if c.open { // what a wildcard lets in may be declared all the same
		if is := d.s.global(name); is != nil {
			return is, learn.Occurrence{}
		}
	}
	return nil, learn.Occurrence{}
}

// Typed finds a type that is derived from the declared one by its local name: messages bind its
// prefix where this does not look.
func (d declared) Typed(local string) learn.Declaration {
	if d.t == nil || d.t.Name.Local == local || d.t.Simple != nil {
		return d
	}
	if t := d.s.set.Derived(d.t, local); t != nil {
		return declared{d.s, t}
	}
	return nil
}

// fault is what is known of a SOAP fault: its detail has elements that are declared.
type fault struct{ s *Contract }

func (f fault) Value() (shape.Type, bool) { return 0, false }

func (f fault) Attribute(string, string) (use learn.AttributeUse, known bool) { return use, false }

func (f fault) Typed(string) learn.Declaration { return nil }

func (f fault) Element(space, local string) (learn.Declaration, learn.Occurrence) {
	if local == "detail" || local == "Detail" {
		return f, learn.Occurrence{}
	}
	return f.s.global(xsd.QName{Space: space, Local: local}), learn.Occurrence{}
}

// contentModel is the content model of a type by the names of its elements.
type contentModel struct {
	parts map[xsd.QName]modelPart
	open  bool // there is a wildcard
}

type modelPart struct {
	t      *xsd.TypeDef
	occurs learn.Occurrence
}

func (s *Contract) content(t *xsd.TypeDef) *contentModel {
	c := s.types[t]
	if c == nil {
		c = &contentModel{parts: map[xsd.QName]modelPart{}, open: t.Any}
		s.types[t] = c
		walk(t.Particle, func(p *xsd.Particle, occurs learn.Occurrence) {
			if p.Kind == xsd.AnyParticle {
				c.open = true
			} else {
				c.element(p.Element, occurs)
			}
		})
	}
	return c
}

// element takes an element and those that may stand in its place. One that stands at several places
// has none of its own.
func (c *contentModel) element(e *xsd.ElementDecl, occurs learn.Occurrence) {
	if len(e.Members) > 0 && occurs.Repeats {
		occurs = learn.Occurrence{} // rows of several names
	}
	for _, one := range append([]*xsd.ElementDecl{e}, e.Members...) {
		if was, again := c.parts[one.Name]; again {
			c.parts[one.Name] = modelPart{was.t, learn.Occurrence{}}
		} else {
			c.parts[one.Name] = modelPart{one.Type, occurs}
		}
	}
}
