package xsd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// content makes the particle of a complex type, or of one step of its derivation; nil: no element.
func (s *Set) content(t *TypeDef, n *DocumentNode, d *schemaDocument) *Particle {
	for _, c := range n.Children {
		if c.Name.Space != xmlns.XSD {
			continue
		}
		switch c.Name.Local {
		case "sequence", "choice", "all", "group":
			return s.particle(t, c, d, nil)
		}
	}
	return nil
}

// particle makes a particle of its element; nil: it never occurs. groups are those that it stands
// in.
func (s *Set) particle(t *TypeDef, n *DocumentNode, d *schemaDocument, groups []*declaration) *Particle {
	if !s.takes(t, 1) {
		return nil
	}
	p := &Particle{Min: 1, Max: 1}
	if !occurs(p, n) {
		t.fail(n, "minOccurs %q and maxOccurs %q", n.Attr("minOccurs"), n.Attr("maxOccurs"))
	}
	if p.Max == 0 {
		return nil
	}
	switch n.Name.Local {
	case "sequence":
		p.Kind = Sequence
	case "choice":
		p.Kind = Choice
	case "all":
		p.Kind = All
	case "group":
		return s.group(t, p, n, d, groups)
	case "any":
		p.Kind, p.Any = AnyParticle, wildcard(n, d)
		return p
	case "element":
		p.Kind, p.Element = ElementParticle, s.local(t, n, d)
		return p
	}
	for _, c := range n.Children {
		switch {
		case c.Name.Space != xmlns.XSD:
		case c.Name.Local == "annotation":
		case p.Kind == All && c.Name.Local != "element":
			t.fail(c, "%s inside all, which has elements only", c.Name.Local)
		case slices.Contains([]string{"element", "group", "choice", "sequence", "any", "all"}, c.Name.Local):
			if part := s.particle(t, c, d, groups); part != nil {
				p.Parts = append(p.Parts, part)
			}
		default:
			t.fail(c, "%s inside %s", c.Name.Local, n.Name.Local)
		}
	}
	return p
}

// takes counts what a type contains; it reports whether that is within the limits.
func (s *Set) takes(t *TypeDef, n int) bool {
	before := t.particles
	t.particles += n
	s.inAll += n
	switch {
	case before > maxParticles || s.full:
		return false
	case t.particles > maxParticles:
		t.problems = append(t.problems, problemAt(t.Place, "a content model of more than %d particles", maxParticles))
		return false
	case s.inAll > maxInAll:
		s.overflow(t)
		return false
	}
	return true
}

// occurs reads minOccurs and maxOccurs.
func occurs(p *Particle, n *DocumentNode) bool {
	least, most := n.Attr("minOccurs"), n.Attr("maxOccurs")
	var err error
	if least != "" {
		if p.Min, err = strconv.Atoi(least); err != nil || p.Min < 0 {
			p.Min = 1
			return false
		}
	}
	switch most {
	case "":
	case "unbounded":
		p.Max = Unbounded
	default:
		if p.Max, err = strconv.Atoi(most); err != nil || p.Max < 0 {
			p.Max = 1
			return false
		}
	}
	return p.Max == Unbounded || p.Max == 0 || p.Min <= p.Max
}

// group takes the model of a named group.
func (s *Set) group(t *TypeDef, p *Particle, n *DocumentNode, d *schemaDocument, groups []*declaration) *Particle {
	name, wrong := d.name(n, n.Attr("ref"))
	if wrong != nil {
		t.problems = append(t.problems, wrong)
		return nil
	}
	g := s.refers(globalName{"group", name}, groups)
	switch {
	case g == nil:
		t.problems = append(t.problems, s.Absent(n, "group", name))
		return nil
	case g.wrong != nil:
		t.problems = append(t.problems, g.wrong)
		return nil
	case slices.Contains(groups, g):
		t.inItself(n, "group", name)
		return nil
	}
	for _, c := range g.node.Children {
		switch c.Name {
		case xsName("sequence"), xsName("choice"), xsName("all"):
			inner := s.particle(t, c, g.doc, append(slices.Clone(groups), g))
			if inner == nil || p.Min == 1 && p.Max == 1 {
				return inner
			}
			p.Kind, p.Parts = Sequence, []*Particle{inner}
			return p
		}
	}
	return nil
}

func wildcard(n *DocumentNode, d *schemaDocument) *Wildcard {
	w := &Wildcard{Target: d.target, Process: n.Attr("processContents")}
	if w.Process != "lax" && w.Process != "skip" {
		w.Process = "strict"
	}
	for field := range strings.FieldsSeq(n.Attr("namespace")) {
		switch field {
		case "##targetNamespace":
			field = d.target
		case "##local":
			field = ""
		}
		w.Namespaces = append(w.Namespaces, field)
	}
	if w.Namespaces == nil {
		w.Namespaces = []string{"##any"}
	}
	return w
}

// element returns a global element whose type will be filled in; nil if there is none.
func (s *Set) element(name QName) *ElementDecl {
	if e := s.declared[name]; e != nil {
		return e
	}
	g := s.globals[globalName{"element", name}]
	if g == nil && name == xsName("schema") { // a schema in a message, as that of a DataSet of .NET
		s.declared[name] = &ElementDecl{Name: name, Type: s.anything(), global: true}
	}
	if g == nil {
		return s.declared[name]
	}
	e := &ElementDecl{Name: name, Place: g.node.Place, global: true}
	s.declared[name] = e
	s.declaration(e, g.node, g.doc)
	e.Abstract = isTrue(g.node.Attr("abstract"))
	s.queue = append(s.queue, func() { e.Members = s.members(name) })
	s.late = append(s.late, func() { s.blockMembers(e) })
	return e
}

// local makes the element of a particle: one that is declared there, or a reference.
func (s *Set) local(t *TypeDef, n *DocumentNode, d *schemaDocument) *ElementDecl {
	if ref, ok := n.Get("ref"); ok {
		name, wrong := d.name(n, ref)
		if wrong != nil {
			t.problems = append(t.problems, wrong)
			return &ElementDecl{Place: n.Place, Type: s.anything()}
		}
		if e := s.element(name); e != nil {
			return e
		}
		t.problems = append(t.problems, s.Absent(n, "element", name))
		return &ElementDecl{Name: name, Place: n.Place, Type: s.anything()}
	}
	if e := s.locals[local{n, d}]; e != nil { // a group that is used again, perhaps by what it contains
		return e
	}
	e := &ElementDecl{Name: QName{"", n.Attr("name")}, Place: n.Place}
	s.locals[local{n, d}] = e
	form := n.Attr("form")
	if form == "qualified" || form == "" && d.qualified {
		e.Name.Space = d.target
	}
	if e.Name.Local == "" {
		t.fail(n, "an element without a name")
	}
	s.declaration(e, n, d)
	t.problems = append(t.problems, e.problems...)
	return e
}

// declaration fills an element in.
func (s *Set) declaration(e *ElementDecl, n *DocumentNode, d *schemaDocument) {
	e.Nillable = isTrue(n.Attr("nillable"))
	e.block, e.final = s.blocked(n, d), s.final(n, d)
	s.late = append(s.late, func() { e.Refused = s.refused(e) })
	if v, ok := n.Get("default"); ok {
		e.Default = &v
	}
	if v, ok := n.Get("fixed"); ok {
		e.Fixed = &v
	}
	fail := func(p *Problem) { e.problems = append(e.problems, p) }
	switch text, named := n.Get("type"); {
	case named:
		e.Type = s.reference(n, d, text, fail)
	case n.First(xsName("complexType")) != nil:
		e.Type = s.anonymous(n.First(xsName("complexType")), d)
	case n.First(xsName("simpleType")) != nil:
		e.Type = s.anonymous(n.First(xsName("simpleType")), d)
	default:
		e.Type = s.anything()
		if head := s.head(n, d); head != nil && head.Type != nil {
			e.Type = head.Type
		}
	}
	if head := s.head(n, d); head == nil && n.Attr("substitutionGroup") != "" {
		s.note(problemAt(n.Place, "the head %s of the substitution group of %s is not declared",
			n.Attr("substitutionGroup"), e.Name))
	} else if head != nil {
		s.late = append(s.late, func() { s.affiliated(e, head, n) })
	}
}

// head is the element in whose place one may stand; nil: there is none.
func (s *Set) head(n *DocumentNode, d *schemaDocument) *ElementDecl {
	text := n.Attr("substitutionGroup")
	name, err := d.name(n, text)
	if text == "" || err != nil {
		return nil
	}
	return s.element(name)
}

// members are the elements that may stand in place of a head.
func (s *Set) members(head QName) (list []*ElementDecl) {
	if s.heads == nil {
		s.heads = map[QName][]QName{}
		for c, g := range s.globals {
			if text := g.node.Attr("substitutionGroup"); c.kind == "element" && text != "" {
				if name, err := g.doc.name(g.node, text); err == nil {
					s.heads[name] = append(s.heads[name], c.name)
				}
			}
		}
	}
	seen := map[QName]bool{head: true}
	for todo := []QName{head}; len(todo) > 0; todo = todo[1:] {
		for _, name := range s.heads[todo[0]] {
			if !seen[name] {
				seen[name] = true
				if s.inAll++; s.inAll > maxInAll {
					continue
				}
				todo = append(todo, name)
				list = append(list, s.element(name))
			}
		}
	}
	slices.SortFunc(list, func(a, b *ElementDecl) int { return compareNames(a.Name, b.Name) })
	return list
}
