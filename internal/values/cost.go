package values

import (
	"slices"

	"github.com/hhfr/hhfr/internal/xsd"
)

// endless is what a type costs that contains itself in any case.
const endless = 1 << 20

// typeCosts find how deep samples have to be.
type typeCosts struct {
	known map[*xsd.TypeDef]int
	begun int // types whose cost is being found
}

// cost is how many levels of elements a type needs at least.
func (c *typeCosts) cost(t *xsd.TypeDef) int {
	if isAny(t) || t.Particle == nil {
		return 0
	}
	if n, known := c.known[t]; known {
		return n
	}
	c.known[t] = endless // as long as it is not known
	c.begun++
	n := c.particleCost(t.Particle)
	c.begun--
	// Inside another one it may be endless for that one's sake alone.
	if delete(c.known, t); n < endless || c.begun == 0 {
		c.known[t] = n
	}
	return n
}

func (c *typeCosts) particleCost(p *xsd.Particle) int {
	if p.Min == 0 {
		return 0
	}
	switch p.Kind {
	case xsd.ElementParticle:
		return c.elementCost(p.Element)
	case xsd.Choice:
		least := 0
		for i, part := range p.Parts {
			if n := c.particleCost(part); i == 0 || n < least {
				least = n
			}
		}
		return least
	case xsd.Sequence, xsd.All, xsd.AnyParticle:
	}
	most := 0
	for _, part := range p.Parts {
		most = max(most, c.particleCost(part))
	}
	return most
}

func (c *typeCosts) elementCost(e *xsd.ElementDecl) int {
	least := endless
	for _, one := range choices(e) {
		if one.Nillable {
			least = 1
		}
		for _, t := range typesOf(one) {
			least = min(least, 1+c.cost(t))
		}
	}
	return least
}

// choices are the elements that may stand in a place.
func choices(e *xsd.ElementDecl) (list []*xsd.ElementDecl) {
	for _, one := range append([]*xsd.ElementDecl{e}, e.Members...) {
		if !one.Abstract {
			list = append(list, one)
		}
	}
	return list
}

// typesOf are the types that an element may have, its own first.
func typesOf(e *xsd.ElementDecl) (list []*xsd.TypeDef) {
	if isAny(e.Type) {
		return []*xsd.TypeDef{e.Type}
	}
	seen := map[*xsd.TypeDef]bool{}
	for todo := []*xsd.TypeDef{e.Type}; len(todo) > 0; todo = todo[1:] {
		t := todo[0]
		if seen[t] {
			continue
		}
		seen[t] = true
		if !t.Abstract && !slices.Contains(e.Refused, t) {
			list = append(list, t)
		}
		todo = append(todo, t.Derived...)
	}
	return list
}
