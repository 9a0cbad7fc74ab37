package xsd

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

const (
	// maxCompared bounds what is done to compare one content model with that of its base, and
	// maxComparedInAll what is done for all of a description. Beyond, nothing is said.
	maxCompared      = 300_000
	maxComparedInAll = 5_000_000
)

// particles checks that whatever elements a type allows, in whatever order, its base allows too.
// XML Schema says so by 12 rules that compare particles by their form, and refuse some content
// models that do allow less; XML Schema 1.1 has replaced them by what is done here.
func (r *restriction) particles(t, base *TypeDef) {
	c := inclusion{r: r, states: map[stateKey]*state{}, absent: map[*Particle]bool{}, spaces: map[string]bool{"": true}}
	c.namespaces(t.Particle)
	c.namespaces(base.Particle)
	c.spaces[elsewhere] = true
	before := r.set.compared
	c.most = min(before+maxCompared, maxComparedInAll)
	c.compare(c.begin(t.Particle), c.begin(base.Particle))
}

// elsewhere is a namespace that no schema has: it stands for all that a description does not name.
const elsewhere = "\x00"

// state is what still has to come of a content model: a particle, this often, and then what is
// next. nil: nothing.
type state struct {
	stateKey
	id int
}

type stateKey struct {
	p        *Particle
	min, max int
	next     *state
	// met are the parts of an all that have come, a byte for each; "": none.
	met string
}

// inclusion compares two content models, as automata whose states are made when they are met.
type inclusion struct {
	r      *restriction
	states map[stateKey]*state
	absent map[*Particle]bool
	spaces map[string]bool // that either of them names
	most   int             // of r.set.compared
}

// namespaces collects those of wildcards and elements.
func (c *inclusion) namespaces(p *Particle) {
	switch {
	case p == nil:
	case p.Kind == ElementParticle:
		c.spaces[p.Element.Name.Space] = true
		for _, m := range p.Element.Members {
			c.spaces[m.Name.Space] = true
		}
	case p.Kind == AnyParticle:
		c.spaces[p.Any.Target] = true
		for _, n := range p.Any.Namespaces {
			if n != anyNamespace && n != otherNamespace {
				c.spaces[n] = true
			}
		}
	default:
		for _, part := range p.Parts {
			c.namespaces(part)
		}
	}
}

func (c *inclusion) state(k stateKey) *state {
	s := c.states[k]
	if s == nil {
		s = &state{k, len(c.states) + 1}
		c.states[k] = s
	}
	return s
}

func (c *inclusion) begin(p *Particle) *state {
	if p == nil {
		return nil
	}
	return c.then(p, nil)
}

// then is a particle, and what is behind it.
func (c *inclusion) then(p *Particle, next *state) *state {
	return c.state(stateKey{p: p, min: p.Min, max: p.Max, next: next})
}

// mayBeAbsent reports whether a particle allows that there is nothing.
func (p *Particle) mayBeAbsent() bool {
	if p.Min == 0 {
		return true
	}
	switch p.Kind {
	case Sequence, All:
		return !slices.ContainsFunc(p.Parts, func(part *Particle) bool { return !part.mayBeAbsent() })
	case Choice:
		return slices.ContainsFunc(p.Parts, (*Particle).mayBeAbsent)
	case ElementParticle, AnyParticle:
	}
	return false
}

func (c *inclusion) mayBeAbsent(p *Particle) bool {
	is, known := c.absent[p]
	if !known {
		is = p.mayBeAbsent()
		c.absent[p] = is
	}
	return is
}

// mayEnd reports whether nothing more has to come.
func (c *inclusion) mayEnd(s *state) bool {
	for ; s != nil; s = s.next {
		if s.met != "" {
			for i, part := range s.p.Parts {
				if s.met[i] == 0 && part.Min > 0 {
					return false
				}
			}
		} else if s.min > 0 && !c.mayBeAbsent(s.p) {
			return false
		}
	}
	return true
}

// step is an element or wildcard that may come next, and what has to come then.
type step struct {
	leaf *Particle
	to   *state
}

// steps adds what may come next, up to a state behind.
func (c *inclusion) steps(list []step, s, behind *state) []step {
	for s != behind {
		c.r.set.compared++
		var absent bool
		if s.met != "" {
			list = c.all(list, s.p, s.met, s.next)
			absent = c.mayEnd(&state{stateKey: stateKey{p: s.p, met: s.met}})
		} else {
			rest := s.next
			if most := s.max; most != 1 {
				if most != Unbounded {
					most--
				}
				rest = c.state(stateKey{p: s.p, min: max(s.min-1, 0), max: most, next: s.next})
			}
			list = c.once(list, s.p, rest)
			absent = s.min == 0 || c.mayBeAbsent(s.p)
		}
		if !absent {
			return list
		}
		s = s.next
	}
	return list
}

// once adds what may come next of one occurrence of a particle, with rest behind it.
func (c *inclusion) once(list []step, p *Particle, rest *state) []step {
	switch p.Kind {
	case ElementParticle, AnyParticle:
		return append(list, step{p, rest})
	case All:
		return c.all(list, p, string(make([]byte, len(p.Parts))), rest)
	case Choice:
		for _, part := range p.Parts {
			list = c.steps(list, c.then(part, rest), rest)
		}
		return list
	case Sequence:
	}
	first := rest
	for _, part := range slices.Backward(p.Parts) {
		first = c.then(part, first)
	}
	return c.steps(list, first, rest)
}

// all adds what may come next of an all.
func (c *inclusion) all(list []step, p *Particle, met string, rest *state) []step {
	for i, part := range p.Parts {
		if met[i] != 0 {
			continue
		}
		now := []byte(met)
		now[i] = 1
		list = append(list, step{part, c.state(stateKey{p: p, met: string(now), next: rest})})
	}
	return list
}

// pair is a state of the restriction, and those that the base may be in then.
type pair struct {
	own   *state
	base  []*state
	after string // the last element; "": none
}

func (p *pair) key() string {
	key := make([]byte, 0, 8*len(p.base)+8)
	for _, s := range append([]*state{p.own}, p.base...) {
		key = binary.AppendUvarint(key, uint64(s.number())) //nolint:gosec // not negative
	}
	return string(key)
}

// compare walks both automata side by side, until one allows what the other does not.
func (c *inclusion) compare(own, base *state) {
	seen := map[string]bool{}
	todo := []pair{{own, []*state{base}, ""}}
	for ; len(todo) > 0; todo = todo[1:] {
		at := &todo[0]
		key := at.key()
		if seen[key] {
			continue
		}
		seen[key] = true
		var steps []step
		for _, b := range at.base {
			steps = c.steps(steps, b, nil)
		}
		if c.mayEnd(at.own) && !slices.ContainsFunc(at.base, c.mayEnd) {
			c.r.fail(Position{}, "nothing may come %s, where that needs %s", at.where(), steps[0].leaf.title())
			return
		}
		index := indexSteps(steps)
		for _, next := range c.steps(nil, at.own, nil) {
			for _, is := range c.leaves(next.leaf) {
				steps := index.of(is)
				if c.r.set.compared += len(steps) + 1; c.r.set.compared > c.most || len(c.states) > maxCompared/10 {
					return
				}
				to, found := c.allowed(is, steps)
				switch {
				case len(to) > 0:
					todo = append(todo, pair{next.to, to, is.title()})
				case found:
					return // it was said why
				default:
					c.r.fail(is.place(), "%s %s, which that does not allow", is.title(), at.where())
					return
				}
			}
		}
	}
}

// stepIndex has steps by the names of their elements, and those that are not of one name.
type stepIndex struct {
	named  map[QName][]step
	others []step
}

func indexSteps(list []step) stepIndex {
	x := stepIndex{named: map[QName][]step{}}
	for _, s := range list {
		if s.leaf.Kind == ElementParticle && len(s.leaf.Element.Members) == 0 {
			x.named[s.leaf.Element.Name] = append(x.named[s.leaf.Element.Name], s)
		} else {
			x.others = append(x.others, s)
		}
	}
	return x
}

// of are the steps that may be those of an element.
func (x *stepIndex) of(is leaf) []step {
	if is.e == nil {
		return x.others
	}
	return slices.Concat(x.named[is.e.Name], x.others)
}

// where is the place of a pair in a content.
func (p *pair) where() string {
	if p.after == "" {
		return "at the beginning"
	}
	return "after " + p.after
}

// leaf is an element, or any of a namespace.
type leaf struct {
	e     *ElementDecl // nil: any
	any   *Wildcard
	space string
}

func (l *leaf) title() string {
	switch {
	case l.e != nil:
		return l.e.Name.String()
	case l.space == elsewhere:
		return "an element of any other namespace"
	}
	return fmt.Sprintf("an element of the namespace %q", l.space)
}

// place is that of an element that is declared in the content model.
func (l *leaf) place() Position {
	if l.e == nil || l.e.global {
		return Position{}
	}
	return l.e.Place
}

func (p *Particle) title() string {
	if p.Kind == ElementParticle {
		return p.Element.Name.String()
	}
	return "an element"
}

// leaves are the elements that a particle allows: any for each namespace that it may be of.
func (c *inclusion) leaves(p *Particle) (list []leaf) {
	if p.Kind == AnyParticle {
		for _, space := range slices.Sorted(maps.Keys(c.spaces)) {
			if p.Any.Allows(space) {
				list = append(list, leaf{any: p.Any, space: space})
			}
		}
		return list
	}
	e := p.Element
	if !e.Abstract || len(e.Members) == 0 {
		list = append(list, leaf{e: e, space: e.Name.Space})
	}
	for _, m := range e.Members {
		if !m.Abstract {
			list = append(list, leaf{e: m, space: m.Name.Space})
		}
	}
	return list
}

// allowed are the states of the base behind an element; found: it would be there with less inside.
func (c *inclusion) allowed(is leaf, steps []step) (to []*state, found bool) {
	for _, s := range steps {
		switch b := s.leaf; {
		case b.Kind == AnyParticle:
			if !b.Any.Allows(is.space) {
				continue
			}
			if is.e == nil && !is.any.isAsStrict(b.Any) {
				c.r.fail(Position{}, "any elements, which are compared more strictly there")
				return nil, true
			}
		case is.e == nil:
			continue
		case b.Element != is.e:
			was := b.Element.named(is.e.Name)
			if was == nil {
				continue
			}
			if why := c.r.element(is.e, was); why != "" {
				c.r.fail(is.place(), "%s %s", is.title(), why)
				return nil, true
			}
		}
		to = append(to, s.to)
	}
	slices.SortFunc(to, func(a, b *state) int { return cmp.Compare(a.number(), b.number()) })
	return slices.Compact(to), len(to) > 0
}

func (s *state) number() int {
	if s == nil {
		return 0
	}
	return s.id
}

// element says why an element allows more than the one of the base; "" if it does not.
func (r *restriction) element(e, was *ElementDecl) string {
	switch {
	case e == was:
		return ""
	case e.Nillable && !was.Nillable:
		return "is nillable, and not there"
	case was.Fixed != nil && (e.Fixed == nil || was.Type != nil && was.Type.Simple != nil &&
		!sameFixed(was.Fixed, e.Fixed, was.Type.Simple)):
		return fmt.Sprintf("is always %.40q there", *was.Fixed)
	case was.block&^e.block != 0:
		return fmt.Sprintf("does not block %s, as there", was.block&^e.block)
	case !r.narrows(e.Type, was.Type):
		return "has a type that is not derived by restriction from the one there"
	}
	return ""
}
