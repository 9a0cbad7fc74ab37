package xsd

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Tree writes an element as a tree, a line for each element and attribute: its name, how often it
// occurs, and its type. A type that stands above, or was written before, is not written again.
func Tree(w io.Writer, e *ElementDecl) error {
	t := treeWriter{w: w, written: map[*TypeDef]bool{}}
	t.element(e, 1, 1, 0, "", "")
	return t.err
}

// Tree writes all elements: those in the Body, and header blocks with a word before them.
func (c *Contents) Tree(w io.Writer) error {
	for _, e := range c.Body {
		if err := Tree(w, e); err != nil {
			return err
		}
	}
	if c.Type != nil {
		if err := Tree(w, &ElementDecl{Name: QName{Local: "Body"}, Type: c.Type}); err != nil {
			return err
		}
	}
	for _, e := range c.Headers {
		t := treeWriter{w: w, written: map[*TypeDef]bool{}}
		if t.element(e, 1, 1, 0, "", "header  "); t.err != nil {
			return t.err
		}
	}
	return nil
}

type treeWriter struct {
	w       io.Writer
	written map[*TypeDef]bool
	err     error
}

func (t *treeWriter) line(depth int, format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, strings.Repeat("  ", depth)+format+"\n", args...)
	}
}

// element writes an element; inside is the namespace of the element that it stands in, before what
// stands before it.
func (t *treeWriter) element(e *ElementDecl, least, most, depth int, inside, before string) {
	name := e.Name.String()
	if e.Name.Space == inside {
		name = e.Name.Local
	}
	parts := []string{before + name}
	if n := occurrence(least, most); n != "" {
		parts = append(parts, n)
	}
	parts = append(parts, e.Type.describe())
	if e.Nillable {
		parts = append(parts, "nillable")
	}
	if e.Abstract {
		parts = append(parts, "abstract")
	}
	if e.Fixed != nil {
		parts = append(parts, fmt.Sprintf("= %q", *e.Fixed))
	}
	again := t.written[e.Type] && (e.Type.Particle != nil || e.Type.Attributes != nil)
	if again {
		parts = append(parts, "(as above)")
	}
	t.line(depth, "%s", strings.Join(parts, "  "))
	for _, m := range e.Members {
		t.line(depth, "  or %s", m.Name)
	}
	if again || e.Type.Any {
		return
	}
	t.written[e.Type] = true
	for _, a := range e.Type.Attributes {
		required := ""
		if a.Required {
			required = "  required"
		}
		t.line(depth+1, "@%s  %s%s", a.Name.Local, a.Type.describe(), required)
	}
	if e.Type.AnyAttribute != nil {
		t.line(depth+1, "@…")
	}
	if p := simplify(e.Type.Particle); p != nil {
		t.particle(p, depth+1, e.Name.Space, true)
	}
}

func (t *treeWriter) particle(p *Particle, depth int, inside string, top bool) {
	switch p.Kind {
	case ElementParticle:
		t.element(p.Element, p.Min, p.Max, depth, inside, "")
		return
	case AnyParticle:
		t.line(depth, "…%s  any element of %s", spaced(p), strings.Join(p.Any.Namespaces, " "))
		return
	case Choice:
		t.line(depth, "one of%s", spaced(p))
		depth++
	case All:
		t.line(depth, "in any order%s", spaced(p))
		depth++
	default:
		if !top || p.Min != 1 || p.Max != 1 {
			t.line(depth, "sequence%s", spaced(p))
			depth++
		}
	}
	for _, part := range p.Parts {
		t.particle(part, depth, inside, false)
	}
}

// occurrence is how often something occurs, as 0..1 or 1..*; "" for once.
func occurrence(least, most int) string {
	switch {
	case least == 1 && most == 1:
		return ""
	case most == Unbounded:
		return fmt.Sprintf("%d..*", least)
	}
	return fmt.Sprintf("%d..%d", least, most)
}

// spaced is how often a particle occurs, with spaces before it.
func spaced(p *Particle) string {
	if n := occurrence(p.Min, p.Max); n != "" {
		return "  " + n
	}
	return ""
}

// describe is a type in a few words.
func (t *TypeDef) describe() string {
	switch {
	case t == nil || t.Any:
		return "anything"
	case t.Array != nil:
		return "array of " + t.Array.describe() + " " + t.Dimensions
	case t.Simple != nil:
		return t.Simple.describe()
	case t.Mixed:
		return "text with elements"
	}
	return "elements"
}

func (s *Simple) describe() string {
	text := s.Builtin
	switch s.Variety {
	case Atomic:
	case List:
		text = "list of " + s.Item.describe()
	case Union:
		var members []string
		for _, m := range s.Members {
			members = append(members, m.describe())
		}
		text = strings.Join(slices.Compact(members), " or ")
	}
	switch values := s.Facets.Enumeration; {
	case len(values) > 4:
		text = fmt.Sprintf("one of %d values, such as %q", len(values), values[0])
	case len(values) > 0:
		text = fmt.Sprintf("one of %q", values)
	}
	return text
}
