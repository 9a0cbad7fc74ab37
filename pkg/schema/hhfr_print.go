package schema

import (
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/shape"
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
	p.schema(s)
	return strings.TrimPrefix(p.b.String(), "\n") + "\n"
}

// Compact prints the schema without prefixes and white space, as stores keep it.
func (s *Schema) Compact() []byte {
	var p hhfrPrinter
	p.schema(s)
	return []byte(p.b.String())
}

type hhfrPrinter struct {
	b      strings.Builder
	prefix string
	indent string // written before each tag; empty: nothing
}

func (p *hhfrPrinter) schema(s *Schema) {
	if len(s.headers) > 0 {
		p.tag("", "header", ">")
		p.nest(1)
		for _, h := range s.headers {
			p.element(h, "")
		}
		p.nest(-1)
		p.tag("/", "header", ">")
	}
	p.element(s.root, "")
}

// tag writes a tag: its name with or without a slash before it, and attributes as pairs.
func (p *hhfrPrinter) tag(slash, local, end string, attrs ...string) {
	p.b.WriteString(p.indent + "<" + slash + p.prefix + local)
	for i := 0; i+1 < len(attrs); i += 2 {
		p.b.WriteString(" " + attrs[i] + `="` + escapes.Replace(attrs[i+1]) + `"`)
	}
	p.b.WriteString(end)
}

func (p *hhfrPrinter) nest(by int) {
	if p.indent != "" {
		p.indent = "\n" + strings.Repeat("  ", (len(p.indent)-1)/2+by)
	}
}

// element prints a declaration that stands inside one of a namespace.
func (p *hhfrPrinter) element(e *Element, inside string) {
	attrs := []string{"name", e.Name}
	if e.Namespace != inside {
		attrs = append(attrs, "targetNamespace", e.Namespace)
	}
	switch {
	case e.Array:
		attrs = append(attrs, "type", "array", "primitives", typeName(e.Type))
		if e.Items > 0 {
			attrs = append(attrs, "value", strconv.Itoa(e.Items))
		}
		if e.Item != "" {
			attrs = append(attrs, "item", e.Item)
		}
		p.tag("", "element", "/>", attrs...)
		return
	case e.Leaf():
		p.tag("", "element", "/>", append(attrs, "type", typeName(e.Type))...)
		return
	}
	p.tag("", "element", ">", attrs...)
	p.nest(1)
	p.tag("", "complexType", ">")
	p.nest(1)
	for _, a := range e.Attributes {
		p.tag("", "attribute", "/>", "name", a.Name, "type", typeName(a.Type))
	}
	for _, c := range e.Children {
		p.element(c, e.Namespace)
	}
	p.nest(-1)
	p.tag("/", "complexType", ">")
	p.nest(-1)
	p.tag("/", "element", ">")
}
