package xsd

import (
	"slices"
	"strconv"
	"strings"
)

// graph has the nodes of a description.
type graph struct {
	of     map[any]int
	nodes  []canonicalNode
	simple map[*Simple]string // as they are written
}

// canonicalNode is an element or a type: its line, with a mark for each number, and the nodes that
// these numbers are of.
type canonicalNode struct {
	line string
	next []int
}

// mark stands for a number. It cannot be in a text.
const mark = '\x00'

func (n QName) canonical() string { return quote(n.Space) + " " + quote(n.Local) }

// line is a line that is being written.
type line struct {
	b    strings.Builder
	next []int
}

func (l *line) add(parts ...string) {
	for _, p := range parts {
		l.b.WriteString(p)
	}
}

// flag writes a word if it applies.
func (l *line) flag(applies bool, word string) {
	if applies {
		l.add(" ", word)
	}
}

// to writes the number of a node.
func (l *line) to(n int) {
	l.b.WriteByte(mark)
	l.next = append(l.next, n)
}

// begin makes a node whose line is not yet written.
func (g *graph) begin(key any) int {
	n := len(g.nodes)
	g.of[key] = n
	g.nodes = append(g.nodes, canonicalNode{})
	return n
}

func (g *graph) end(n int, l *line) int {
	g.nodes[n] = canonicalNode{l.b.String(), l.next}
	return n
}

func (g *graph) element(e *ElementDecl) int {
	if n, ok := g.of[e]; ok {
		return n
	}
	n := g.begin(e)
	l := &line{}
	l.add("element ", e.Name.canonical(), " ")
	l.to(g.typ(e.Type))
	l.flag(e.Nillable, "nillable")
	l.flag(e.Abstract, "abstract")
	l.add(supplied(e.Default, e.Fixed))
	if len(e.Members) > 0 {
		l.add(" or")
	}
	for _, m := range e.Members {
		l.add(" ")
		l.to(g.element(m))
	}
	switch {
	case e.Type == nil || e.Type.Any:
		if blocks := e.blocks(); blocks != 0 {
			l.add(" block(", strings.ReplaceAll(blocks.String(), " and ", " "), ")")
		}
	case len(e.Refused) > 0:
		l.add(" except ")
		l.to(g.refused(e.Refused))
	}
	return g.end(n, l)
}

// refused are the types that xsi:type may not name, which many elements have in common.
func (g *graph) refused(list []*TypeDef) int {
	if n, ok := g.of[&list[0]]; ok {
		return n
	}
	n := g.begin(&list[0])
	l := &line{}
	l.add("types")
	for _, t := range list {
		l.add(" ", t.Name.canonical())
	}
	return g.end(n, l)
}

// supplied writes the value that is supplied where none stands, and the one that always stands.
func supplied(value, fixed *string) (text string) {
	if value != nil {
		text += " default " + quote(*value)
	}
	if fixed != nil {
		text += " fixed " + quote(*fixed)
	}
	return text
}

func (g *graph) typ(t *TypeDef) int {
	if t == nil || t.Any {
		t = &anyOfAny
	}
	if n, ok := g.of[t]; ok {
		return n
	}
	n := g.begin(t)
	l := &line{}
	l.add("type")
	if t.Any {
		l.add(" any")
		return g.end(n, l)
	}
	if t.Array != nil {
		l.add(" array ")
		l.to(g.typ(t.Array))
		l.add(" ", quote(t.Dimensions))
		t = t.withoutEncoding()
	}
	l.flag(t.Abstract, "abstract")
	l.flag(t.Mixed && t.Simple == nil, "mixed")
	if t.Simple != nil {
		l.add(" text ", g.text(t.Simple))
	}
	for _, a := range t.Attributes {
		l.add(" attribute(", a.Name.canonical(), " ", g.text(a.Type))
		l.flag(a.Required, "required")
		l.add(supplied(a.Default, a.Fixed), ")")
	}
	if t.AnyAttribute != nil {
		l.add(" attributes", t.AnyAttribute.canonical())
	}
	if p := simplify(t.Particle); p != nil && t.Simple == nil {
		l.add(" content ")
		g.particle(l, p)
	}
	for _, d := range t.Derived {
		l.add(" derived(", d.Name.canonical(), " ")
		l.to(g.typ(d))
		l.add(")")
	}
	return g.end(n, l)
}

// anyOfAny is anyType, which every set has once more.
var anyOfAny = TypeDef{Any: true}

// particle writes a content model.
func (g *graph) particle(l *line, p *Particle) {
	switch p.Kind {
	case ElementParticle:
		l.to(g.element(p.Element))
	case AnyParticle:
		l.add("any", p.Any.canonical())
	default:
		l.add(particleWords[p.Kind], "(")
		for i, part := range p.Parts {
			if i > 0 {
				l.add(" ")
			}
			g.particle(l, part)
		}
		l.add(")")
	}
	if p.Min != 1 || p.Max != 1 {
		most := "*"
		if p.Max != Unbounded {
			most = strconv.Itoa(p.Max)
		}
		l.add("{", strconv.Itoa(p.Min), ",", most, "}")
	}
}

var particleWords = map[ParticleKind]string{Sequence: "sequence", Choice: "choice", All: "all"}

// Model is the content model without what makes no difference to messages; nil: no element.
func (t *TypeDef) Model() *Particle { return simplify(t.Particle) }

// simplify removes from a content model what makes no difference to messages: sequences in
// sequences and choices in choices that occur once, those of one part, and those of none.
func simplify(p *Particle) *Particle {
	if p == nil || p.Kind == ElementParticle || p.Kind == AnyParticle {
		return p
	}
	out := *p
	out.Parts = nil
	for _, part := range p.Parts {
		part = simplify(part)
		switch {
		case part == nil:
			if p.Kind == Choice { // which may then be empty
				out.Min = 0
			}
		case part.Kind == p.Kind && p.Kind != All && part.Min == 1 && part.Max == 1:
			out.Parts = append(out.Parts, part.Parts...)
		default:
			out.Parts = append(out.Parts, part)
		}
	}
	if out.Kind == All {
		slices.SortStableFunc(out.Parts, func(a, b *Particle) int { return compareNames(a.name(), b.name()) })
	}
	switch {
	case len(out.Parts) == 0:
		return nil
	case len(out.Parts) == 1 && out.Min == 1 && out.Max == 1:
		return out.Parts[0]
	case len(out.Parts) == 1 && out.Parts[0].Min == 1 && out.Parts[0].Max == 1:
		inner := *out.Parts[0]
		inner.Min, inner.Max = out.Min, out.Max
		return &inner
	}
	return &out
}

// name is that of a particle's element; none for others.
func (p *Particle) name() (n QName) {
	if p.Element != nil {
		n = p.Element.Name
	}
	return n
}

func (w *Wildcard) canonical() string {
	if w == nil {
		return ""
	}
	var spaces []string
	for _, n := range w.Namespaces {
		switch n {
		case "##any":
			return "(" + w.Process + ")"
		case "##other":
			return "(" + w.Process + " not " + quote(w.Target) + ")"
		}
		spaces = append(spaces, quote(n))
	}
	slices.Sort(spaces)
	return "(" + w.Process + " " + strings.Join(slices.Compact(spaces), " ") + ")"
}

// text is a simple type as it is written.
func (g *graph) text(s *Simple) string {
	text, ok := g.simple[s]
	if !ok {
		text = s.String()
		g.simple[s] = text
	}
	return text
}

// sorted are elements in the order of their names.
func sorted(list []*ElementDecl) []*ElementDecl {
	return slices.SortedStableFunc(
		slices.Values(list),
		func(a, b *ElementDecl) int { return compareNames(a.Name, b.Name) },
	)
}
