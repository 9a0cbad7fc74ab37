package xsd

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Tree writes an element as a tree, a line for each element and attribute: its name, how often it
// occurs, and its type; then the types that xsi:type may name, with what they add, or have where
// they restrict; then the elements that may stand in its place. What is blocked or abstract is
// written too, and said to be. A type that stands above, or was written before, is not written
// again.
func Tree(w io.Writer, e *ElementDecl) error {
	t := newTreeWriter(w)
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
		t := newTreeWriter(w)
		if t.element(e, 1, 1, 0, "", "header  "); t.err != nil {
			return t.err
		}
	}
	return nil
}

type treeWriter struct {
	w       io.Writer
	written map[*TypeDef]bool
	refused map[*TypeDef][]*TypeDef // that were blocked where a type was written
	err     error
}

func newTreeWriter(w io.Writer) treeWriter {
	return treeWriter{w: w, written: map[*TypeDef]bool{}, refused: map[*TypeDef][]*TypeDef{}}
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
	for _, flag := range []struct {
		is   bool
		word string
	}{
		{e.Nillable, "nillable"}, {e.Abstract, "abstract"}, {e.Type.isAbstract(), "of an abstract type"},
		{e.Default != nil, "= " + valueOf(e.Default) + " if empty"}, {e.Fixed != nil, "= " + valueOf(e.Fixed)},
		{e.Type.isAny() && e.blocks() != 0, "blocks " + e.blocks().String()},
	} {
		if flag.is {
			parts = append(parts, flag.word)
		}
	}
	again := e.Type.isAny() || t.written[e.Type]
	if again && !e.Type.isAny() && (e.Type.Particle != nil || e.Type.Attributes != nil) {
		parts = append(parts, "(as above)")
	}
	t.line(depth, "%s", strings.Join(parts, "  "))
	if !again {
		t.refused[e.Type] = e.Refused
		t.content(e.Type, nil, depth+1, e.Name.Space)
		t.derived(e, e.Type, depth+1)
	} else if !e.Type.isAny() && !slices.Equal(e.Refused, t.refused[e.Type]) {
		t.derivedNames(e, depth+1)
	}
	for _, m := range e.Members {
		t.element(&ElementDecl{
			Name: m.Name, Type: m.Type, Nillable: m.Nillable, Abstract: m.Abstract, Default: m.Default, Fixed: m.Fixed,
			Refused: m.Refused, block: m.block,
		}, 1, 1, depth, inside, "or ")
	}
	for _, m := range e.blocked {
		t.line(depth, "or %s  blocked", m.Name)
	}
}

// valueOf is a value that a declaration states; "": it states none.
func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return strconv.Quote(*text)
}

func (t *TypeDef) isAny() bool      { return t == nil || t.Any }
func (t *TypeDef) isAbstract() bool { return t != nil && t.Abstract }

// content writes what a type consists of; of one that extends a base only what that has not.
func (t *treeWriter) content(of, base *TypeDef, depth int, inside string) {
	t.written[of] = true
	particle := of.Particle
	if base != nil {
		particle = of.added(base)
	}
	for _, a := range of.Attributes {
		required := ""
		if a.Required {
			required = "  required"
		}
		if base != nil {
			if _, known := base.find(a.Name); known {
				continue
			}
		}
		t.line(depth, "@%s  %s%s", a.Name.Local, a.Type.describe(), required)
	}
	if of.AnyAttribute != nil && (base == nil || base.AnyAttribute == nil) {
		t.line(depth, "@…")
	}
	if p := simplify(particle); p != nil {
		t.particle(p, depth, inside, true)
	}
}

// added is the content that an extension adds to its base.
func (t *TypeDef) added(base *TypeDef) *Particle {
	switch p := t.Particle; {
	case p == base.Particle:
		return nil
	case base.Particle != nil && p != nil && len(p.Parts) == 2 && p.Parts[0] == base.Particle:
		return p.Parts[1]
	default:
		return p
	}
}

// derived writes the types that xsi:type may name in place of a type of an element, each below its
// base.
func (t *treeWriter) derived(e *ElementDecl, base *TypeDef, depth int) {
	for _, d := range base.Derived {
		parts := []string{"xsi:type " + d.Name.String()}
		of := base
		if d.how == byRestriction {
			of = nil
			parts = append(parts, "restricts")
		}
		if d.Abstract {
			parts = append(parts, "abstract")
		}
		if slices.Contains(e.Refused, d) {
			parts = append(parts, "blocked")
		}
		again := t.written[d]
		if again {
			parts = append(parts, "(as above)")
		}
		t.line(depth, "%s", strings.Join(parts, "  "))
		if !again {
			t.content(d, of, depth+1, e.Name.Space)
			t.derived(e, d, depth+1)
		}
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

// derivedNames writes the types that xsi:type may name, and those that it may not, where others are
// blocked than where they were written.
func (t *treeWriter) derivedNames(e *ElementDecl, depth int) {
	seen := map[*TypeDef]bool{}
	for todo := slices.Clone(e.Type.Derived); len(todo) > 0; todo = todo[1:] {
		d := todo[0]
		if seen[d] {
			continue
		}
		seen[d] = true
		todo = append(todo, d.Derived...)
		switch {
		case slices.Contains(e.Refused, d):
			t.line(depth, "xsi:type %s  blocked", d.Name)
		case !d.Abstract:
			t.line(depth, "xsi:type %s", d.Name)
		}
	}
}

// spaced is how often a particle occurs, with spaces before it.
func spaced(p *Particle) string {
	if n := occurrence(p.Min, p.Max); n != "" {
		return "  " + n
	}
	return ""
}
