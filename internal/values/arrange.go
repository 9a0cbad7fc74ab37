package values

import (
	"github.com/hhfr/hhfr/internal/xsd"
)

// group are the elements of one name below an element: the first stands at at among the names.
type group struct {
	name        xsd.QName
	at          int
	count, used int
	wild        bool // no element of the content model has the name
}

// placed is an element of a group.
type placed struct {
	of    *group
	index int
}

// arranger gives elements that are known by name and number the order of a content model. Of
// several orders it takes that in which an element of the earliest name comes as soon as it can.
type arranger struct {
	byName map[xsd.QName]*group
	wild   []*group // for wildcards, from the first that has elements left
	out    []placed
}

// arrange orders the elements. Those that the model has no place for come last: whoever checks the
// message reports them.
func arrange(p *xsd.Particle, groups []*group) []placed {
	a := &arranger{byName: map[xsd.QName]*group{}}
	for _, g := range groups {
		a.byName[g.name] = g
		if g.wild {
			a.wild = append(a.wild, g)
		}
	}
	if p != nil {
		a.particle(p)
	}
	for _, g := range groups {
		for g.used < g.count {
			a.take(g)
		}
	}
	return a.out
}

func (a *arranger) take(g *group) {
	a.out = append(a.out, placed{g, g.used})
	g.used++
}

// particle takes as many occurrences as there are elements for.
func (a *arranger) particle(p *xsd.Particle) {
	for n := 0; p.Max == xsd.Unbounded || n < p.Max; n++ {
		before := len(a.out)
		a.once(p)
		if len(a.out) == before {
			return
		}
	}
}

func (a *arranger) once(p *xsd.Particle) {
	switch p.Kind {
	case xsd.ElementParticle:
		if g := a.element(p.Element); g != nil {
			a.take(g)
		}
	case xsd.AnyParticle:
		if g := a.any(p.Any); g != nil {
			a.take(g)
		}
	case xsd.Sequence:
		for _, part := range p.Parts {
			a.particle(part)
		}
	case xsd.Choice:
		if part := a.earliest(p.Parts); part != nil {
			a.particle(part)
		}
	case xsd.All:
		for part := a.earliest(p.Parts); part != nil; part = a.earliest(p.Parts) {
			a.particle(part)
		}
	}
}

// element finds what may stand for a declaration: an element of its name, or one of its
// substitution group.
func (a *arranger) element(e *xsd.ElementDecl) (found *group) {
	look := func(e *xsd.ElementDecl) {
		g := a.byName[e.Name]
		if g != nil && !e.Abstract && g.used < g.count && (found == nil || g.at < found.at) {
			found = g
		}
	}
	look(e)
	for _, m := range e.Members {
		look(m)
	}
	return found
}

func (a *arranger) any(w *xsd.Wildcard) *group {
	for len(a.wild) > 0 && a.wild[0].used == a.wild[0].count {
		a.wild = a.wild[1:]
	}
	for _, g := range a.wild {
		if g.used < g.count && w.Allows(g.name.Space) {
			return g
		}
	}
	return nil
}

// earliest is the part that an element of the earliest name can go to; nil: there is none.
func (a *arranger) earliest(parts []*xsd.Particle) (best *xsd.Particle) {
	at := 0
	for _, part := range parts {
		if first, ok := a.first(part); ok && (best == nil || first < at) {
			best, at = part, first
		}
	}
	return best
}

// first is the earliest of the names of elements that are left for a particle.
func (a *arranger) first(p *xsd.Particle) (at int, ok bool) {
	switch p.Kind {
	case xsd.ElementParticle:
		if g := a.element(p.Element); g != nil {
			return g.at, true
		}
		return 0, false
	case xsd.AnyParticle:
		if g := a.any(p.Any); g != nil {
			return g.at, true
		}
		return 0, false
	case xsd.Sequence, xsd.Choice, xsd.All:
	}
	for _, part := range p.Parts {
		if first, has := a.first(part); has && (!ok || first < at) {
			at, ok = first, true
		}
	}
	return at, ok
}
