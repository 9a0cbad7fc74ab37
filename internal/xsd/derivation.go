package xsd

import (
	"slices"
)

func (s *Set) blocked(n *DocumentNode, d *schemaDocument) derivations {
	of := d.block
	if _, own := n.Get("block"); own {
		of = s.derivations(n, "block")
	}
	s.blocks = s.blocks || of != 0
	return of
}

func (s *Set) final(n *DocumentNode, d *schemaDocument) derivations {
	if _, own := n.Get("final"); own {
		return s.derivations(n, "final")
	}
	return d.final
}

// derived are the global complex types that a type is the base of.
func (s *Set) derived(base QName) (list []*TypeDef) {
	if s.bases == nil {
		s.bases = map[QName][]QName{}
		for c, g := range s.globals {
			if of, ok := s.baseOf(c.name, g); ok && c.kind == "type" && g.node.Name.Local == "complexType" {
				s.bases[of] = append(s.bases[of], c.name)
			}
		}
	}
	for _, name := range slices.SortedStableFunc(slices.Values(s.bases[base]), compareNames) {
		list = append(list, s.typ(name))
	}
	return list
}

// stepOf is the restriction or extension that a type is made by; nil: it is made by none.
func stepOf(n *DocumentNode) *DocumentNode {
	for _, c := range n.Children {
		switch c.Name {
		case xsName("complexContent"), xsName("simpleContent"):
			return stepOf(c)
		case xsName("restriction"), xsName("extension"):
			return c
		}
	}
	return nil
}

// baseOf is the base that a global type names; of one that is redefined that of the original.
func (s *Set) baseOf(name QName, g *declaration) (base QName, ok bool) {
	step := stepOf(g.node)
	if step == nil {
		return QName{}, false
	}
	base, err := g.doc.name(step, step.Attr("base"))
	if base.Space == "" && s.globals[globalName{"type", base}] == nil { // as in reference
		base.Space = g.doc.target
	}
	if g.redefines != nil && base == name {
		return s.baseOf(name, g.redefines)
	}
	return base, err == nil && base != name
}

// derivation is the restriction or extension of a content, with its base filled in; nil: there is
// none.
func (s *Set) derivation(t *TypeDef, n *DocumentNode, d *schemaDocument) (step *DocumentNode, base *TypeDef) {
	step, t.how = n.First(xsName("extension")), byExtension
	if step == nil {
		step, t.how = n.First(xsName("restriction")), byRestriction
	}
	if step == nil {
		t.fail(n, "%s without restriction or extension", n.Name.Local)
		return nil, nil
	}
	base = s.base(t, step, d)
	if base == t {
		t.fail(step, "%s is derived from itself", t.Name)
		return nil, nil
	}
	s.complete(base)
	if s.isBusy(base) {
		t.fail(step, "%s is derived from itself", base.Name)
		return nil, nil
	}
	t.Base = base
	t.unlessFinal(step, base, t.how)
	return step, base
}

// isBusy reports whether a global type is being filled in: what is derived from it then is a
// circle, in which no walk along bases would end.
func (s *Set) isBusy(t *TypeDef) bool {
	g := s.globals[globalName{"type", t.Name}]
	return g != nil && s.types[t.Name] == t && g.state == busy
}

// base resolves the type that a step of derivation names, which is not filled in: of one that
// redefines itself the original.
func (s *Set) base(t *TypeDef, step *DocumentNode, d *schemaDocument) *TypeDef {
	text := step.Attr("base")
	if t.redefines != nil {
		if name, err := d.name(step, text); err == nil && t.isName(name) {
			return s.original(t)
		}
	}
	return s.reference(step, d, text, func(p *Problem) { t.problems = append(t.problems, p) })
}

// isName reports whether a reference means the type: some leave the prefix out.
func (t *TypeDef) isName(name QName) bool {
	return name == t.Name || name == QName{"", t.Name.Local}
}

// unlessFinal notes that a type may not be derived so.
func (t *TypeDef) unlessFinal(at *DocumentNode, base *TypeDef, how derivations) {
	if base.final&how != 0 {
		t.fail(at, "%s is final: there is no %s of it", base.Name, how)
	}
}

// inherit takes the attributes of the base. A restriction states again which others it allows, but
// for those of SOAP's encoding, which leave that out.
func (t *TypeDef) inherit(base *TypeDef, step *DocumentNode) {
	if base.Any {
		return
	}
	t.Attributes = slices.Clone(base.Attributes)
	if step.Name.Local == "extension" || base.Array != nil {
		t.AnyAttribute = base.AnyAttribute
	}
}

func (s *Set) simpleContent(t *TypeDef, n *DocumentNode, d *schemaDocument) {
	step, base := s.derivation(t, n, d)
	if step == nil {
		return
	}
	t.inherit(base, step)
	t.Simple = base.Simple
	if inner := step.First(xsName("simpleType")); inner != nil {
		own := &TypeDef{Place: inner.Place}
		t.Simple = s.simpleType(own, inner, d)
		t.problems = append(t.problems, own.problems...)
	}
	if t.Simple == nil {
		if !base.Any {
			t.fail(step, "simple content from %s, whose content is elements", base.Name)
		}
		t.Simple = s.builtin("anySimpleType").Simple
	}
	if step.Name.Local == "restriction" {
		t.Simple = s.facets(t, t.Simple, step)
		s.restricts(t, base, step)
	}
	s.attributes(t, step, d)
}

func (s *Set) complexContent(t *TypeDef, n *DocumentNode, d *schemaDocument) {
	step, base := s.derivation(t, n, d)
	if step == nil {
		return
	}
	t.inherit(base, step)
	t.Simple = base.Simple // tools take an extension that only adds attributes, whatever its content is called
	t.Array, t.Dimensions = base.Array, base.Dimensions
	own := s.content(t, step, d)
	t.Particle = own
	if step.Name.Local == "extension" && s.takes(t, base.particles) {
		t.Mixed = t.Mixed || base.Mixed && !base.Any
		switch {
		case base.Particle == nil:
		case own == nil:
			t.Particle = base.Particle
		default:
			t.Particle = &Particle{Kind: Sequence, Min: 1, Max: 1, Parts: []*Particle{base.Particle, own}}
		}
	}
	if step.Name.Local == "restriction" {
		s.restricts(t, base, step)
	}
	s.attributes(t, step, d)
	s.arrayOf(t, step, d)
}

// since are the ways in which a type is derived from another; none where it is not. With what types
// in between block, where these are asked for.
func (s *Set) since(t, base *TypeDef) (ways, between derivations) {
	for at := t; at != base; at = at.Base {
		if at == nil || at.Any || at.Base == at || s.full {
			if base != nil && base.Any {
				return ways, between
			}
			return 0, 0
		}
		ways |= at.how
		if at != t {
			between |= at.block
		}
		if s.inAll++; s.inAll > maxInAll {
			s.overflow(t)
		}
	}
	return ways, between
}

// refused are the types that xsi:type may not name on an element, though they are derived from its
// type, in the order in which they are met.
func (s *Set) refused(e *ElementDecl) []*TypeDef {
	key := blockedType{e.Type, e.blocks()}
	if !s.blocks || key.ways == 0 || e.Type.Any || len(e.Type.Derived) == 0 {
		return nil
	}
	list, known := s.blockedTypes[key]
	if known {
		return list
	}
	type derivedType struct {
		t    *TypeDef
		ways derivations
	}
	todo := []derivedType{{e.Type, 0}}
	for ; len(todo) > 0 && !s.full; todo = todo[1:] {
		for _, t := range todo[0].t.Derived {
			ways := todo[0].ways | t.how
			todo = append(todo, derivedType{t, ways})
			if ways&key.ways != 0 {
				list = append(list, t)
			}
			if s.inAll++; s.inAll > maxInAll {
				s.overflow(t)
			}
		}
	}
	slices.SortFunc(list, func(a, b *TypeDef) int { return compareNames(a.Name, b.Name) })
	s.blockedTypes[key] = list
	return list
}

// overflow notes, once, that a description is too large.
func (s *Set) overflow(t *TypeDef) {
	if s.full {
		return
	}
	s.full = true
	s.note(problemAt(t.Place, "types that contain more than %d elements and groups in all", maxInAll))
	t.problems = append(t.problems, s.Problems[len(s.Problems)-1])
}

// blockMembers takes the members of a substitution group away that its head blocks.
func (s *Set) blockMembers(head *ElementDecl) {
	if !s.blocks {
		return
	}
	var members []*ElementDecl
	for _, m := range head.Members {
		ways, between := s.since(m.Type, head.Type)
		if head.block&bySubstitution != 0 || ways&(head.blocks()|between) != 0 {
			head.blocked = append(head.blocked, m)
		} else {
			members = append(members, m)
		}
	}
	head.Members = members
}

// affiliated notes that an element may not be in the substitution group that it names.
func (s *Set) affiliated(e, head *ElementDecl, n *DocumentNode) {
	if ways, _ := s.since(e.Type, head.Type); ways&head.final != 0 {
		e.problems = append(e.problems, problemAt(n.Place, "%s may not stand in place of %s, which is final for %s",
			e.Name, head.Name, ways&head.final))
	}
}
