package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/xsd"
)

// Of returns a message of an XML Schema or WSDL as an HHFR Schema, which has the same fingerprint;
// nil if the dialect cannot say all of it, with each reason why not, of code Unsupported or
// TooLarge and with its Path.
func Of(c *Contents) (*Schema, []*Error) {
	m := dialectMaker{inside: map[*xsd.TypeDef]bool{}}
	s := &Schema{prefix: "xs:"}
	switch {
	case c.Encoded:
		m.cannot("Body", "values in SOAP's encoding")
	case c.Type != nil:
		m.cannot("Body", "a type of Body itself")
	case len(c.Body) != 1:
		m.cannot("Body", "%d elements, where one is declared", len(c.Body))
	default:
		s.root = m.element(c.Body[0], c.Body[0].Name.Local, 0)
	}
	for _, h := range c.Headers {
		s.headers = append(s.headers, m.element(h, "Header/"+h.Name.Local, 0))
	}
	if len(m.why) == 0 && s.print() != xsd.Prints(c)[0] {
		m.cannot(s.root.Name, "more than elements, attributes and arrays")
	}
	if len(m.why) > 0 {
		return nil, m.why
	}
	return s, nil
}

type dialectMaker struct {
	inside map[*xsd.TypeDef]bool // types that the current element stands in
	nodes  int
	why    []*Error
}

func (m *dialectMaker) cannot(path, format string, args ...any) {
	m.refuse(Unsupported, path, fmt.Sprintf(format, args...))
}

func (m *dialectMaker) refuse(code Code, path, what string) {
	if len(m.why) < maxDrifts {
		m.why = append(m.why, &Error{Code: code, At: -1, Path: path, What: what})
	}
}

// element returns what the dialect can say of an element.
func (m *dialectMaker) element(e *xsd.ElementDecl, path string, depth int) *Element {
	d := &Element{Name: e.Name.Local, Namespace: e.Name.Space, Type: shape.TypeOpen}
	t := e.Type
	if m.nodes++; m.nodes > maxNodes || depth > maxDepth {
		m.refuse(TooLarge, path, fmt.Sprintf("more than %d declarations, or %d in each other", maxNodes, maxDepth))
		return d
	}
	switch {
	case e.Nillable:
		m.cannot(path, "nillable")
	case e.Abstract, len(e.Members) > 0:
		m.cannot(path, "others may stand in its place")
	case e.Default != nil, e.Fixed != nil:
		m.cannot(path, "a default or fixed value")
	case t == nil, t.Any:
		m.cannot(path, "anything inside")
	case m.inside[t]:
		m.cannot(path, "contains itself")
	case t.Abstract, len(t.Derived) > 0:
		m.cannot(path, "a type that others are derived from")
	case t.Array != nil:
		m.encodedArray(d, t, path)
	case t.Simple != nil && len(t.Attributes) > 0, t.Mixed:
		m.cannot(path, "text beside elements or attributes")
	case t.Simple != nil:
		d.Type = m.simple(t.Simple, path)
	case t.AnyAttribute != nil:
		m.cannot(path, "any attributes")
	default:
		m.inside[t] = true
		m.complex(d, t, path, depth)
		delete(m.inside, t)
	}
	return d
}

// simple returns a type of the dialect.
func (m *dialectMaker) simple(s *xsd.Simple, path string) shape.Type {
	name := s.String() // of a type with many values it is long
	for _, t := range hhfrTypes {
		if t.name == name {
			return t.typ
		}
	}
	m.cannot(path, "the type %.60s: there are string, int, byte, float, boolean", name)
	return shape.TypeOpen
}

// encodedArray returns an array of SOAP's encoding.
func (m *dialectMaker) encodedArray(d *Element, t *xsd.TypeDef, path string) {
	d.Array = true
	if t.Array.Simple == nil {
		m.cannot(path, "an array of elements with elements inside")
		return
	}
	d.Type = m.simple(t.Array.Simple, path)
	count := strings.Trim(t.Dimensions, "[]")
	if t.Dimensions == "["+count+"]" && count == "" {
		return
	}
	var err error
	if d.Items, err = strconv.Atoi(count); err != nil || t.Dimensions != "["+count+"]" || d.Items < 1 {
		m.cannot(path, "an array of dimensions %.20s", t.Dimensions)
	}
}

func (m *dialectMaker) complex(d *Element, t *xsd.TypeDef, path string, depth int) {
	for _, a := range t.Attributes {
		switch {
		case a.Name.Space != "":
			m.cannot(path, "the attribute %s, in a namespace", a.Name)
		case !a.Required:
			m.cannot(path, "the attribute %s, which may be absent", a.Name.Local)
		case a.Default != nil, a.Fixed != nil:
			m.cannot(path, "the attribute %s, with a default or fixed value", a.Name.Local)
		}
		d.Attributes = append(d.Attributes, Attribute{a.Name.Local, m.simple(a.Type, path+"/@"+a.Name.Local)})
	}
	p := t.Model()
	switch {
	case p == nil:
		m.cannot(path, "nothing inside")
	case p.Kind == xsd.ElementParticle && (p.Max == xsd.Unbounded || p.Max > 1):
		m.namedArray(d, p, path, depth)
	case p.Kind == xsd.ElementParticle:
		m.child(d, p, path, depth)
	case p.Kind != xsd.Sequence, p.Min != 1, p.Max != 1:
		m.cannot(path, "more than one sequence of elements")
	default:
		for _, part := range p.Parts {
			m.child(d, part, path, depth)
		}
	}
}

// namedArray returns an array whose only child repeats.
func (m *dialectMaker) namedArray(d *Element, p *xsd.Particle, path string, depth int) {
	item := p.Element
	d.Array, d.Item = true, item.Name.Local
	switch {
	case p.Min == p.Max && p.Max <= maxItems:
		d.Items = p.Min
	case p.Min != 0 || p.Max != xsd.Unbounded:
		m.cannot(path+"/"+d.Item, "it occurs %s times: an array has a fixed number of items, or any", times(p))
	}
	switch {
	case item.Type == nil || item.Type.Simple == nil:
		m.cannot(path+"/"+d.Item, "it repeats, and has elements inside")
		return
	case item.Name.Space != d.Namespace, len(d.Attributes) > 0:
		m.cannot(path, "an array with attributes, or items in another namespace")
	}
	d.Type = m.element(item, path+"/"+d.Item, depth+1).Type
}

// times is how often a particle occurs, in words.
func times(p *xsd.Particle) string {
	if p.Max == xsd.Unbounded {
		return fmt.Sprintf("%d or more", p.Min)
	}
	return fmt.Sprintf("%d to %d", p.Min, p.Max)
}

func (m *dialectMaker) child(d *Element, p *xsd.Particle, path string, depth int) {
	switch {
	case p.Kind == xsd.AnyParticle:
		m.cannot(path, "any element")
		return
	case p.Kind != xsd.ElementParticle:
		m.cannot(path, "a choice, or elements in any order")
		return
	}
	path += "/" + p.Element.Name.Local
	if p.Min != 1 || p.Max != 1 {
		m.cannot(path, "it occurs %s times", times(p))
		return
	}
	c := m.element(p.Element, path, depth+1)
	if slices.ContainsFunc(d.Children, c.sameName) {
		m.cannot(path, "it occurs again")
	}
	d.Children = append(d.Children, c)
}
