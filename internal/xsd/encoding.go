package xsd

import (
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// encoded returns a type of the SOAP encodings, which descriptions use without a schema of them;
// nil if it is none. Those that are named after built-in types are these, with the attributes of
// references.
func (s *Set) encoded(name QName) *TypeDef {
	if !isEncoding(name.Space) {
		return nil
	}
	t := &TypeDef{Name: name, AnyAttribute: &Wildcard{Namespaces: []string{"##any"}, Process: "lax"}}
	switch of := s.builtin(name.Local); {
	case name.Local == "Array":
		t.Array, t.Dimensions = s.anything(), "[]"
		t.Particle = anyItems()
	case name.Local == "Struct":
		t.Particle = anyItems()
	case name.Local == "base64":
		t.Simple = s.builtin("base64Binary").Simple
	case of == nil:
		return nil
	case of.Any:
		return of
	default:
		t.Simple = of.Simple
	}
	s.types[name] = t
	return t
}

// isEncoding reports whether a namespace is that of one of SOAP's encodings.
func isEncoding(space string) bool {
	return space == xmlns.SOAP11Encoding || space == xmlns.SOAP12Encoding
}

// anyItems are elements of any name, as many as there are.
func anyItems() *Particle {
	return &Particle{Kind: AnyParticle, Min: 0, Max: Unbounded, Any: &Wildcard{
		Namespaces: []string{"##any"}, Process: "lax",
	}}
}

// arrayOf takes the type of the items from the attribute wsdl:arrayType (WSDL 1.1, section 2.2).
func (s *Set) arrayOf(t *TypeDef, step *DocumentNode, d *schemaDocument) {
	if t.Array == nil {
		return
	}
	for _, c := range step.All(xsName("attribute")) {
		for _, a := range c.Attrs {
			if a.Name != (QName{xmlns.WSDL, "arrayType"}) {
				continue
			}
			item, dimensions := a.Value, ""
			if at := strings.IndexByte(item, '['); at >= 0 {
				item, dimensions = item[:at], item[at:]
			}
			t.Array = s.reference(c, d, item, func(p *Problem) { t.problems = append(t.problems, p) })
			t.Dimensions = strings.Join(strings.Fields(dimensions), "")
		}
	}
	if t.Particle == nil {
		t.Particle = anyItems()
	}
}

// withoutEncoding is an array without what all arrays of SOAP's encoding have: its attributes, and
// items of any name.
func (t *TypeDef) withoutEncoding() *TypeDef {
	own := *t
	own.AnyAttribute = nil
	own.Attributes = slices.DeleteFunc(slices.Clone(t.Attributes), func(a *AttributeRule) bool {
		return isEncoding(a.Name.Space)
	})
	if p := t.Particle; p != nil && p.Kind == AnyParticle {
		own.Particle = nil
	}
	return &own
}
