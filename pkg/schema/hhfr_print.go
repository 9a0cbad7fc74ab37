package schema

import (
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/pkg/shape"
)

// typeName returns the spelling of a type.
func typeName(t shape.Type) string {
	for _, h := range hhfrTypes {
		if h.typ == t {
			return h.name
		}
	}
	return t.String()
}

// String prints the schema, one declaration per line, with the prefix it was read with.
func (s *Schema) String() string {
	p := hhfrPrinter{prefix: s.prefix, indent: "\n"}
	p.element(s.root)
	return strings.TrimPrefix(p.b.String(), "\n") + "\n"
}

// Canonical returns the form of the schema that its fingerprint is made of: no prefixes, no white
// space, empty tags where there is no content, attributes in the order name, type, primitives,
// value, and types as in docs/negotiation.md, section 8. It is a schema itself.
func (s *Schema) Canonical() []byte {
	var p hhfrPrinter
	p.element(s.root)
	return []byte(p.b.String())
}

type hhfrPrinter struct {
	b      strings.Builder
	prefix string
	indent string // written before each tag; empty: nothing
}

// tag writes a tag: its name with or without a slash before it, and attributes as pairs.
func (p *hhfrPrinter) tag(slash, local, end string, attrs ...string) {
	p.b.WriteString(p.indent + "<" + slash + p.prefix + local)
	for i := 0; i+1 < len(attrs); i += 2 {
		p.b.WriteString(" " + attrs[i] + `="` + attrs[i+1] + `"`)
	}
	p.b.WriteString(end)
}

func (p *hhfrPrinter) nest(by int) {
	if p.indent != "" {
		p.indent = "\n" + strings.Repeat("  ", (len(p.indent)-1)/2+by)
	}
}

func (p *hhfrPrinter) element(e *Element) {
	switch {
	case e.Array && e.Items > 0:
		p.tag("", "element", "/>", "name", e.Name, "type", "array", "primitives", typeName(e.Type), "value",
			strconv.Itoa(e.Items))
		return
	case e.Array:
		p.tag("", "element", "/>", "name", e.Name, "type", "array", "primitives", typeName(e.Type))
		return
	case e.Leaf():
		p.tag("", "element", "/>", "name", e.Name, "type", typeName(e.Type))
		return
	}
	p.tag("", "element", ">", "name", e.Name)
	p.nest(1)
	p.tag("", "complexType", ">")
	p.nest(1)
	for _, a := range e.Attributes {
		p.tag("", "attribute", "/>", "name", a.Name, "type", typeName(a.Type))
	}
	for _, c := range e.Children {
		p.element(c)
	}
	p.nest(-1)
	p.tag("/", "complexType", ">")
	p.nest(-1)
	p.tag("/", "element", ">")
}
