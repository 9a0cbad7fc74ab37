package typed

import (
	"slices"

	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/xsd"
)

// walk visits the elements and wildcards of a content model in their order, with how often each
// occurs. Of those in a group that repeats nothing is said: they have no place of their own.
func walk(p *xsd.Particle, visit func(p *xsd.Particle, occurs learn.Occurrence)) {
	if p != nil {
		walker{visit}.particle(p, learn.Occurrence{}, false)
	}
}

type walker struct {
	visit func(*xsd.Particle, learn.Occurrence)
}

// particle visits what is in a particle. around is how often that occurs by what is around it;
// loose: it is in a group that repeats.
func (w walker) particle(p *xsd.Particle, around learn.Occurrence, loose bool) {
	around.Optional = around.Optional || p.Min == 0 || p.Kind == xsd.Choice && len(p.Parts) > 1
	parts := p.Parts
	switch p.Kind {
	case xsd.ElementParticle, xsd.AnyParticle:
		around.Repeats = around.Repeats || p.Max != 1
		if loose {
			around = learn.Occurrence{}
		}
		w.visit(p, around)
		return
	case xsd.Sequence, xsd.Choice:
	case xsd.All: // in no order, also not in that of the document
		parts = slices.SortedFunc(slices.Values(parts), func(a, b *xsd.Particle) int {
			return compareNames(a.Element.Name, b.Element.Name)
		})
	}
	if p.Max != 1 {
		around.Repeats = around.Repeats || len(parts) == 1
		loose = loose || len(parts) > 1
	}
	for _, part := range parts {
		w.particle(part, around, loose)
	}
}
