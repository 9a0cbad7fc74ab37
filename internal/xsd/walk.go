package xsd

// Reach collects the problems of everything that an element or type consists of. A walk may be used
// for several; it visits each component once.
type Reach struct {
	Problems []*Problem
	elements map[*ElementDecl]bool
	types    map[*TypeDef]bool
}

// Element adds an element.
func (r *Reach) Element(e *ElementDecl) {
	if e == nil || r.elements[e] {
		return
	}
	if r.elements == nil {
		r.elements = map[*ElementDecl]bool{}
	}
	r.elements[e] = true
	r.Problems = append(r.Problems, e.problems...)
	r.Type(e.Type)
	for _, m := range e.Members {
		r.Element(m)
	}
}

// Type adds a type.
func (r *Reach) Type(t *TypeDef) {
	if t == nil || r.types[t] {
		return
	}
	if r.types == nil {
		r.types = map[*TypeDef]bool{}
	}
	r.types[t] = true
	r.Problems = append(r.Problems, t.problems...)
	r.Type(t.Base)
	r.Type(t.Array)
	for _, a := range t.Attributes {
		r.Type(a.of)
	}
	r.particle(t.Particle)
}

func (r *Reach) particle(p *Particle) {
	if p == nil {
		return
	}
	r.Element(p.Element)
	for _, part := range p.Parts {
		r.particle(part)
	}
}
