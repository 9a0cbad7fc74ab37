package gocode

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// structType is a struct: of an element in a Body, or of a type.
type structType struct {
	name   string
	wanted []string // names, preferred first
	in     *structType
	place  xsd.Position
	// element is what an XMLName names; zero: there is none.
	element xsd.QName
	of      *xsd.TypeDef
	fields  []*structField
	choices []choice
	// wrong is why messages cannot be carried, notes what of them is not.
	wrong, notes []Lack
	finite       bool
	reached      bool
}

// structField is a field of a struct: an attribute, an element, or the text.
type structField struct {
	name string
	xml  xsd.QName
	role fieldRole
	// kind is the type of Go without what says how often there is one, unless it is a struct or has
	// names for its values.
	kind   string
	struc  *structType
	enum   *enumType
	simple *xsd.Simple

	many, optional, nillable bool

	place xsd.Position
	decl  *xsd.ElementDecl
	says  []string
	// lack is why it cannot be carried; nil: it can.
	lack *Lack
}

type fieldRole uint8

const (
	elementField fieldRole = iota
	attributeField
	textField
)

// choice are branches of fields, of which one has values, or any if many.
type choice struct {
	branches       [][]branchField
	required, many bool
}

// branchField is a field of a branch, and whether the branch must have it.
type branchField struct {
	*structField
	must bool
}

// Lack is something of messages that generated code does not carry, and where it is declared.
type Lack struct {
	Place xsd.Position
	What  string
}

// String is the place and what it is.
func (l Lack) String() string { return l.Place.String() + ": " + l.What }

// builder makes structs of types.
type builder struct {
	types map[*xsd.TypeDef]*structType
	roots map[*xsd.ElementDecl]*structType
	enums map[*xsd.Simple]*enumType
	all   []*structType
	queue []*structType
}

// root is the struct of an element that stands in a Body, or in the detail of a fault.
func (b *builder) root(e *xsd.ElementDecl) *structType {
	s := b.roots[e]
	if s == nil {
		s = &structType{
			element: e.Name, of: e.Type, place: e.Place,
			wanted: []string{exported(e.Name.Local), exported(e.Name.Local) + "Message"},
		}
		b.roots[e] = s
		b.begin(s)
		if e.Abstract {
			s.wrong = append(s.wrong, Lack{e.Place, fmt.Sprintf("the element %s, which is abstract", e.Name)})
		}
		if e.Nillable && e.Type != nil && !e.Type.Any {
			s.notes = append(s.notes, Lack{e.Place, fmt.Sprintf("that the element %s may be nil", e.Name)})
		}
		if len(e.Members) > 0 {
			what := fmt.Sprintf("elements in place of %s: %s", e.Name, names(e.Members))
			s.notes = append(s.notes, Lack{e.Place, what})
		}
		b.fill()
	}
	return s
}

// typ is the struct of a type, in an element of a name.
func (b *builder) typ(t *xsd.TypeDef, e *xsd.ElementDecl, in *structType) *structType {
	s := b.types[t]
	if s == nil {
		local := exported(e.Name.Local)
		s = &structType{of: t, place: t.Place, in: in, wanted: []string{local}}
		if t.Name.Local != "" {
			local = exported(t.Name.Local)
			s.wanted, s.in = []string{local, local + "Type"}, nil
		}
		b.types[t] = s
		b.begin(s)
	}
	return s
}

func (b *builder) begin(s *structType) {
	b.all = append(b.all, s)
	b.queue = append(b.queue, s)
}

func (b *builder) fill() {
	for len(b.queue) > 0 {
		s := b.queue[0]
		b.queue = b.queue[1:]
		b.content(s)
	}
}

// content makes the fields of a struct.
func (b *builder) content(s *structType) {
	t := s.of
	switch {
	case t == nil || t.Any:
		s.wrong = append(s.wrong, Lack{s.place, "content of any kind (xs:anyType)"})
		return
	case t.Array != nil:
		s.wrong = append(s.wrong, Lack{s.place, "an array of SOAP's encoding"})
		return
	case t.Abstract:
		what := fmt.Sprintf("the type %s, which is abstract: a message names another one", t.Name)
		s.wrong = append(s.wrong, Lack{t.Place, what})
		return
	}
	s.noteDerived(t)
	for _, a := range t.Attributes {
		b.attribute(s, a)
	}
	if t.AnyAttribute != nil {
		s.notes = append(s.notes, Lack{s.place, "attributes of any name"})
	}
	if t.Simple != nil || t.Mixed && len(elementsIn(t.Particle)) == 0 {
		f := &structField{role: textField, kind: "string", place: s.place, simple: t.Simple}
		if t.Simple != nil {
			b.simple(f, t.Simple, s, xsd.QName{}, "Value")
		}
		s.fields = append(s.fields, f)
		return
	}
	if t.Mixed {
		s.notes = append(s.notes, Lack{s.place, "text between elements"})
	}
	b.elements(s, t.Particle)
	s.noteNil()
}

// noteNil notes fields that can be absent and nil, where a pointer is only one of that.
func (s *structType) noteNil() {
	var list []string
	for _, f := range s.fields {
		if f.optional && f.nillable && !f.many {
			list = append(list, f.xml.Local)
		}
	}
	if len(list) > 0 {
		s.notes = append(s.notes, Lack{s.place, "whether it is absent or nil: " + someOf(list)})
	}
}

func elementsIn(p *xsd.Particle) (list []*xsd.Particle) {
	if p == nil {
		return nil
	}
	if p.Kind == xsd.ElementParticle || p.Kind == xsd.AnyParticle {
		return []*xsd.Particle{p}
	}
	for _, part := range p.Parts {
		list = append(list, elementsIn(part)...)
	}
	return list
}

// noteDerived notes types that xsi:type may name in place of one.
func (s *structType) noteDerived(t *xsd.TypeDef) {
	l := Lack{t.Place, fmt.Sprintf("types in place of %s by xsi:type (%d)", t.Name, derived(t))}
	if derived(t) > 0 && !slices.Contains(s.notes, l) {
		s.notes = append(s.notes, l)
	}
}

// derived is how many types xsi:type may name in place of one.
func derived(t *xsd.TypeDef) (n int) {
	seen := map[*xsd.TypeDef]bool{}
	for todo := []*xsd.TypeDef{t}; len(todo) > 0; todo = todo[1:] {
		for _, d := range todo[0].Derived {
			if !seen[d] {
				seen[d] = true
				n++
				todo = append(todo, d)
			}
		}
	}
	return n
}

const maxNamed = 5

// names are those of elements, of many the first.
func names(list []*xsd.ElementDecl) string {
	var all []string
	for _, e := range list {
		all = append(all, e.Name.Local)
	}
	return someOf(all)
}

// someOf are names, of many the first.
func someOf(all []string) string {
	if more := len(all) - maxNamed; more > 0 {
		all = append(slices.Clip(all[:maxNamed]), fmt.Sprintf("and %d others", more))
	}
	return strings.Join(all, ", ")
}

func (b *builder) attribute(s *structType, a *xsd.AttributeRule) {
	f := &structField{xml: a.Name, role: attributeField, optional: !a.Required, place: a.Place}
	b.simple(f, a.Type, s, a.TypeName(), exported(a.Name.Local))
	f.supplied(a.Default, a.Fixed, "without it")
	f.check()
	s.fields = append(s.fields, f)
}

// supplied says what value a description has for where there is none.
func (f *structField) supplied(value, fixed *string, when string) {
	switch {
	case fixed != nil:
		f.says = append(f.says, fmt.Sprintf("always %q", *fixed))
	case value != nil:
		f.says = append(f.says, fmt.Sprintf("%q %s", *value, when))
	}
}

// simple sets the type of Go of a field of a simple type, of this name if it has one.
func (b *builder) simple(f *structField, t *xsd.Simple, s *structType, name xsd.QName, as string) {
	kind, says := kindOf(t)
	f.kind, f.simple = kind, t
	if says != "" {
		f.says = append(f.says, says)
	}
	f.enum = b.enum(t, name, f.place, as)
	if f.enum != nil && name.Local == "" {
		f.enum.wanted = []string{s.wanted[0] + as, s.wanted[0] + as + "Values"}
	}
	if hasNames(t) {
		s.notes = append(s.notes, Lack{f.place, "the namespaces of prefixes in values, which are names"})
	}
}

// check refuses names that tags cannot have.
func (f *structField) check() {
	if strings.ContainsAny(f.xml.Space, " ,") {
		f.lack = &Lack{f.place, fmt.Sprintf("the namespace %q, which a struct tag cannot have", f.xml.Space)}
	}
}

// element makes the field of an element.
func (b *builder) element(s *structType, e *xsd.ElementDecl) *structField {
	f := &structField{xml: e.Name, place: e.Place, decl: e, nillable: e.Nillable}
	f.supplied(e.Default, e.Fixed, "if empty")
	f.check()
	t := e.Type
	switch {
	case f.lack != nil:
	case t == nil || t.Any:
		f.lack = &Lack{e.Place, fmt.Sprintf("%s, of any content (xs:anyType)", e.Name.Local)}
	case t.Simple != nil && len(t.Attributes) == 0:
		if t.AnyAttribute != nil {
			s.notes = append(s.notes, Lack{t.Place, "attributes of any name"})
		}
		if t.Simple.Builtin == "anySimpleType" && t.Simple.Variety == xsd.Atomic {
			s.notes = append(s.notes, Lack{e.Place, "the type that xsi:type names for " + e.Name.Local})
		}
		s.noteDerived(t)
		b.simple(f, t.Simple, s, simpleName(t), exported(e.Name.Local))
	default:
		f.struc = b.typ(t, e, s)
	}
	return f
}

// simpleName is the name of a simple type; that of a complex type with simple content is none.
func simpleName(t *xsd.TypeDef) xsd.QName {
	if t.Name.Space == xmlns.XSD {
		return xsd.QName{}
	}
	return t.Name
}
