package xsd

import (
	"iter"
	"slices"
)

// isEmpty reports whether nothing may be inside, no white space either.
func (t *TypeDef) isEmpty() bool {
	p := t.Particle
	return p == nil || len(p.Parts) == 0 && (p.Kind == Sequence || p.Kind == All || p.Kind == Choice && p.Min == 0)
}

// content matches the children with the content model, and checks each with the declaration that it
// was matched with.
func (c *contentChecker) content(t *TypeDef, n *DocumentNode, path string) {
	m := matcher{
		kids: n.Children, as: make([]*ElementDecl, len(n.Children)), by: make([]*Wildcard, len(n.Children)),
	}
	end, ok := 0, true
	if t.Particle != nil {
		end, ok = m.particle(t.Particle, 0)
	}
	switch {
	case !ok && m.furthest < len(n.Children):
		kid := n.Children[m.furthest]
		c.fail(kid, path, "%s, where %s is expected", kid.Name, m.wanted())
	case !ok:
		c.fail(n, path, "ends, where %s is expected", m.wanted())
	case end < len(n.Children):
		kid := n.Children[end]
		c.fail(kid, path, "%s is too many, or not declared", kid.Name)
	}
	for i, kid := range n.Children {
		if m.as[i] != nil {
			c.element(m.as[i], kid, path+"/"+kid.Name.Local)
		} else if m.by[i] != nil {
			c.wild(m.by[i].Process, kid, path)
		}
	}
}

// matcher walks a content model along children. The next child alone decides what it is matched
// with (XML Schema part 1, appendix H), so that nothing is tried twice.
type matcher struct {
	kids     []*DocumentNode
	as       []*ElementDecl // what each was matched with; nil: a wildcard, or nothing
	by       []*Wildcard    // the wildcard that it was matched with; nil: none
	furthest int
	expected *ElementDecl // at furthest; nil: any
	missed   bool         // something was expected
	// behind are the particles that follow the one which is matched, in each sequence around it.
	behind [][]*Particle
}

// particle matches as often as the particle may occur.
func (m *matcher) particle(p *Particle, at int) (end int, ok bool) {
	count := 0
	for p.Max == Unbounded || count < p.Max {
		next, ok := m.once(p, at)
		if !ok {
			if next > at { // it began, and does not go on
				return next, false
			}
			break
		}
		count++
		if next == at { // nothing is left of it, however often
			count = max(count, p.Min)
			break
		}
		at = next
	}
	return at, count >= p.Min
}

// once matches one occurrence. Where that fails, end is behind at if it had begun.
func (m *matcher) once(p *Particle, at int) (end int, ok bool) {
	switch p.Kind {
	case ElementParticle:
		return m.one(p.Element, at)
	case AnyParticle:
		if at < len(m.kids) && p.Any.Allows(m.kids[at].Name.Space) && !m.declaredBehind(m.kids[at].Name) {
			m.by[at] = p.Any
			return at + 1, true
		}
		m.miss(at, nil)
		return at, false
	case Choice:
		return m.choice(p, at)
	case All:
		return m.all(p, at)
	case Sequence:
	}
	for i, part := range p.Parts {
		m.behind = append(m.behind, p.Parts[i+1:])
		at, ok = m.particle(part, at)
		if m.behind = m.behind[:len(m.behind)-1]; !ok {
			return at, false
		}
	}
	return at, true
}

// declaredBehind reports whether an element that a wildcard could take can begin what follows it.
// XML Schema 1.0 forbids such content models (part 1, section 3.8.6), and 1.1 gives it to the
// declaration; descriptions in use have them where a base type ends with a wildcard.
func (m *matcher) declaredBehind(name QName) bool {
	for i := len(m.behind) - 1; i >= 0; i-- {
		for _, p := range m.behind[i] {
			if p.begins(name) {
				return true
			}
			if !p.canBeEmpty() {
				return false
			}
		}
	}
	return false
}

// begins reports whether an element of a name can be the first of a particle, by a declaration.
func (p *Particle) begins(name QName) bool {
	if p.Kind == ElementParticle {
		return p.Element.named(name) != nil
	}
	for _, part := range p.Parts {
		if part.begins(name) {
			return true
		}
		if p.Kind == Sequence && !part.canBeEmpty() {
			break
		}
	}
	return false
}

// canBeEmpty reports whether a particle matches nothing, too.
func (p *Particle) canBeEmpty() bool {
	switch {
	case p.Min == 0:
		return true
	case p.Kind == ElementParticle || p.Kind == AnyParticle:
		return false
	case p.Kind == Choice:
		return len(p.Parts) == 0 || slices.ContainsFunc(p.Parts, (*Particle).canBeEmpty)
	}
	return !slices.ContainsFunc(p.Parts, func(part *Particle) bool { return !part.canBeEmpty() })
}

// miss notes what would have been matched at a child, or behind the last: an element, or nil for
// any.
func (m *matcher) miss(at int, e *ElementDecl) {
	if at > m.furthest || !m.missed {
		m.furthest, m.expected, m.missed = at, e, true
	}
}

// wanted says what would have been matched.
func (m *matcher) wanted() string {
	if m.expected == nil {
		return "any element"
	}
	return m.expected.Name.String()
}

func (m *matcher) one(e *ElementDecl, at int) (end int, ok bool) {
	if at < len(m.kids) {
		if is := e.named(m.kids[at].Name); is != nil {
			m.as[at] = is
			return at + 1, true
		}
	}
	m.miss(at, e)
	return at, false
}

func (p *Particle) index() *startIndex {
	if p.starts != nil {
		return p.starts
	}
	p.starts = &startIndex{of: map[QName]int{}}
	for i, part := range p.Parts {
		if part.Kind != ElementParticle || len(part.Element.Members) > 0 {
			p.starts.others = append(p.starts.others, i)
			continue
		}
		p.starts.empty = p.starts.empty || part.Min == 0
		if _, again := p.starts.of[part.Element.Name]; !again {
			p.starts.of[part.Element.Name] = i
		}
	}
	return p.starts
}

// candidates yields the parts that a child may begin, in their order.
func (m *matcher) candidates(p *Particle, at int) iter.Seq[int] {
	x := p.index()
	named, others := -1, x.others
	if at < len(m.kids) {
		if i, ok := x.of[m.kids[at].Name]; ok {
			named = i
		}
	}
	return func(yield func(int) bool) {
		for _, i := range others {
			if named >= 0 && named < i {
				if !yield(named) {
					return
				}
				named = -1
			}
			if !yield(i) {
				return
			}
		}
		if named >= 0 {
			yield(named)
		}
	}
}

func (m *matcher) choice(p *Particle, at int) (end int, ok bool) {
	empty := len(p.Parts) == 0 || p.index().empty
	for i := range m.candidates(p, at) {
		next, ok := m.particle(p.Parts[i], at)
		switch {
		case next > at:
			return next, ok
		case ok:
			empty = true
		}
	}
	if first := p.first(); first != nil {
		m.miss(at, first)
	}
	return at, empty
}

// first is the element that a choice, or all, begins with, if it begins with one.
func (p *Particle) first() *ElementDecl {
	if len(p.Parts) == 0 {
		return nil
	}
	return p.Parts[0].Element
}

func (m *matcher) all(p *Particle, at int) (end int, ok bool) {
	met := make([]bool, len(p.Parts))
	for again := true; again; {
		again = false
		for i := range m.candidates(p, at) {
			if met[i] {
				continue
			}
			if next, ok := m.particle(p.Parts[i], at); ok && next > at {
				at, again, met[i] = next, true, true
				break
			}
		}
	}
	ok = true
	for i, part := range p.Parts {
		if !met[i] {
			m.miss(at, part.Element)
			ok = ok && part.Min == 0
		}
	}
	return at, ok
}
