package gocode

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hhfr/hhfr/internal/xsd"
)

// modelFields is the state of making fields of a content model. A message of it is the fields with
// a value in their order: what is in another order cannot be carried.
type modelFields struct {
	b      *builder
	s      *structType
	by     map[xsd.QName]int
	fields []*structField
	// after has the fields that come behind a field, by their numbers.
	after []map[int]bool
}

// use is a field, and whether a part of a content model may have several of it, and must have one.
type use struct {
	field      int
	many, must bool
}

func (b *builder) elements(s *structType, p *xsd.Particle) {
	c := &modelFields{b: b, s: s, by: map[xsd.QName]int{}}
	if p != nil {
		for _, u := range c.particle(p, false, false) {
			c.fields[u.field].many, c.fields[u.field].optional = u.many, !u.must
		}
	}
	order, ok := c.order()
	if !ok {
		s.wrong = append(s.wrong, Lack{s.place, "elements of one name with others between them"})
		return
	}
	local := map[string]xsd.QName{}
	for _, i := range order {
		f := c.fields[i]
		if other, met := local[f.xml.Local]; met && (other.Space == "" || f.xml.Space == "") {
			f.lack = cmp.Or(f.lack, &Lack{f.place, fmt.Sprintf("two elements %s, of which one has no namespace",
				f.xml.Local)})
		}
		local[f.xml.Local] = f.xml
		s.fields = append(s.fields, f)
	}
}

// particle makes the fields of a part of a content model. many: what it stands in repeats;
// optional: that may be absent.
func (c *modelFields) particle(p *xsd.Particle, many, optional bool) (uses []use) {
	optional = optional || p.Min == 0
	repeats := p.Max != 1
	switch p.Kind {
	case xsd.ElementParticle:
		uses = c.element(p.Element, many || repeats, optional)
	case xsd.AnyParticle:
		lack := Lack{c.s.place, "elements of any name"}
		if optional {
			c.s.notes = append(c.s.notes, lack)
		} else {
			c.s.wrong = append(c.s.wrong, lack)
		}
	case xsd.Sequence, xsd.All:
		uses = c.sequence(p, many || repeats, optional)
	case xsd.Choice:
		var branches [][]use
		for _, part := range p.Parts {
			branches = append(branches, c.particle(part, many || repeats, true))
		}
		uses = c.choice(branches, many || repeats, optional || slices.ContainsFunc(p.Parts, canBeEmpty))
	}
	for i := range uses {
		uses[i].many, uses[i].must = uses[i].many || repeats, uses[i].must && p.Min > 0
	}
	return uses
}

// canBeEmpty reports whether a part of a content model may be no element at all.
func canBeEmpty(p *xsd.Particle) bool {
	switch p.Kind {
	case xsd.ElementParticle, xsd.AnyParticle:
		return p.Min == 0
	case xsd.Choice:
		return p.Min == 0 || len(p.Parts) == 0 || slices.ContainsFunc(p.Parts, canBeEmpty)
	case xsd.Sequence, xsd.All:
	}
	return p.Min == 0 || !slices.ContainsFunc(p.Parts, func(part *xsd.Particle) bool { return !canBeEmpty(part) })
}

func (c *modelFields) sequence(p *xsd.Particle, many, optional bool) (uses []use) {
	var last []use
	parts := 0
	for _, part := range p.Parts {
		of := c.particle(part, many, optional)
		if len(of) == 0 {
			continue
		}
		parts++
		if p.Kind == xsd.Sequence {
			for _, a := range last {
				for _, b := range of {
					if a.field != b.field {
						c.after[a.field][b.field] = true
					} else if len(last) > 1 || len(of) > 1 {
						c.s.wrong = append(c.s.wrong, Lack{c.s.place, "an element that stands in two places"})
					}
				}
			}
		}
		last = of
		uses = merge(uses, of, true)
	}
	if many && parts > 1 {
		c.s.wrong = append(c.s.wrong, Lack{c.s.place, fmt.Sprintf("elements that repeat as a group, from %s on",
			c.fields[uses[0].field].xml.Local)})
	}
	return uses
}

// merge adds the uses of another part; what is in both is there several times, unless only one of
// the parts is.
func merge(uses, more []use, both bool) []use {
	for _, m := range more {
		at := slices.IndexFunc(uses, func(u use) bool { return u.field == m.field })
		if at < 0 {
			uses = append(uses, m)
		} else {
			uses[at].many = uses[at].many || m.many || both
			uses[at].must = uses[at].must || m.must
		}
	}
	return uses
}

func (c *modelFields) choice(branches [][]use, many, optional bool) (uses []use) {
	var of choice
	for _, branch := range branches {
		uses = merge(uses, branch, false)
		var fields []branchField
		for _, u := range branch {
			fields = append(fields, branchField{c.fields[u.field], u.must})
		}
		if len(fields) > 0 {
			of.branches = append(of.branches, fields)
		}
	}
	for i := range uses {
		uses[i].must = uses[i].must && len(branches) == 1
	}
	switch {
	case len(uses) == 0 && !optional:
		c.s.wrong = append(c.s.wrong, Lack{c.s.place, "elements of any name"})
		return nil
	case len(of.branches) < 2:
		return uses
	case many:
		c.s.notes = append(c.s.notes, Lack{c.s.place, fmt.Sprintf("the order among %s and other elements that repeat",
			c.fields[uses[0].field].xml.Local)})
	}
	of.required, of.many = !optional, many
	c.s.choices = append(c.s.choices, of)
	return uses
}

// element makes the field of an element, or those of the elements that may stand in its place.
func (c *modelFields) element(e *xsd.ElementDecl, many, optional bool) (uses []use) {
	var all []*xsd.ElementDecl
	for _, m := range append([]*xsd.ElementDecl{e}, e.Members...) {
		if !m.Abstract {
			all = append(all, m)
		}
	}
	switch len(all) {
	case 0:
		lack := Lack{e.Place, fmt.Sprintf("the element %s, which is abstract, and none stands in its place", e.Name)}
		if optional {
			c.s.notes = append(c.s.notes, lack)
		} else {
			c.s.wrong = append(c.s.wrong, lack)
		}
		return nil
	case 1:
		return []use{c.field(all[0])}
	}
	var branches [][]use
	for _, m := range all {
		branches = append(branches, []use{c.field(m)})
	}
	return c.choice(branches, many, optional)
}

// field makes the field of an element, or finds the one that it has.
func (c *modelFields) field(e *xsd.ElementDecl) use {
	at, met := c.by[e.Name]
	if !met {
		f := c.b.element(c.s, e)
		at = len(c.fields)
		c.by[e.Name] = at
		c.fields = append(c.fields, f)
		c.after = append(c.after, map[int]bool{})
		return use{field: at, must: true}
	}
	f := c.fields[at]
	f.nillable = f.nillable || e.Nillable
	if f.decl.Type != e.Type {
		f.lack = &Lack{e.Place, fmt.Sprintf("elements %s of two types", e.Name)}
	}
	return use{field: at, must: true}
}

// order is an order of the fields that fits every part of the content model, close to that in which
// they stand there; false: there is none.
func (c *modelFields) order() (order []int, ok bool) {
	before := make([][]int, len(c.fields))
	for a, after := range c.after {
		for b := range after {
			before[b] = append(before[b], a)
		}
	}
	const inProgress, placed = 1, 2
	state := make([]uint8, len(c.fields))
	var place func(i int) bool
	place = func(i int) bool {
		if state[i] != 0 {
			return state[i] == placed
		}
		state[i] = inProgress
		slices.Sort(before[i])
		for _, j := range before[i] {
			if !place(j) {
				return false
			}
		}
		state[i] = placed
		order = append(order, i)
		return true
	}
	for i := range c.fields {
		if !place(i) {
			return nil, false
		}
	}
	return order, true
}
