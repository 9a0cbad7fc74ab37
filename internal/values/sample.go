package values

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/xsd"
)

// attempts is how many samples are made until one is as described: where a wildcard may take what
// an element behind it is meant to be, not all are.
const attempts = 8

// Sample makes a message of the kind, an envelope without header blocks. Seed 0 has every optional
// part, the first of choices, and one of what may repeat; each other seed is another choice of all
// these, of substitution groups and of derived types. It is as the description says; the error is
// that no such message was found, as with types that contain themselves in any case.
func (t *Translator) Sample(seed uint64) (text []byte, err error) {
	for again := range uint64(attempts) {
		if text, err = t.sample(seed, again); err == nil {
			break
		}
	}
	return text, err
}

func (t *Translator) sample(seed, again uint64) ([]byte, error) {
	s := &sampler{
		Translator: t, tagWriter: newTagWriter(t.version), typeCosts: typeCosts{known: map[*xsd.TypeDef]int{}},
		r: rand.New(rand.NewPCG(seed, again)), all: seed|again == 0, //nolint:gosec // no secret
	}
	c := t.contents
	if c.Type != nil {
		s.content(c.Type, &xsd.ElementDecl{Name: bodyName, Type: c.Type}, 0)
	}
	for _, e := range c.Body {
		s.element(e, 0)
	}
	if s.failed != nil {
		return nil, s.failed
	}
	text := s.envelope("")
	found, err := t.check(text, s.places)
	if err != nil || len(found) > 0 {
		return nil, orMisfits(found, err)
	}
	return text, nil
}

type sampler struct {
	*Translator
	tagWriter
	typeCosts
	r      *rand.Rand
	all    bool // seed 0
	ids    int
	failed error
}

const (
	// deep is where samples begin to end as soon as they can, and maxSample the length at which
	// they do, in bytes.
	deep      = 12
	maxSample = 64 << 10
	// longest is a sample of what must be there, in bytes: more is an error.
	longest = 1 << 20
	// maxItems bounds the items of an array that has always as many.
	maxItems = 1000
)

// ends reports whether what may be left out is left out.
func (s *sampler) ends(depth int) bool { return depth > deep || s.b.Len() > maxSample }

// pick is the index of one of n: the first with seed 0, the one that costs least where it has to
// end.
func (s *sampler) pick(n, depth int, cost func(int) int) int {
	at := 0
	if !s.all {
		at = s.r.IntN(n)
	}
	if s.ends(depth) || cost(at) >= endless {
		for i := range n {
			if cost(i) < cost(at) {
				at = i
			}
		}
	}
	return at
}

func (s *sampler) element(e *xsd.ElementDecl, depth int) {
	if s.b.Len() > longest {
		s.fail("%s is in a message of more than %d bytes", e.Name, longest)
	}
	if s.failed != nil {
		return
	}
	list := choices(e)
	if len(list) == 0 {
		s.fail("%s is abstract, and nothing may stand in its place", e.Name)
		return
	}
	declared := e
	e = list[s.pick(len(list), depth, func(i int) int { return s.elementCost(list[i]) })]
	types := typesOf(e)
	if len(types) == 0 || depth > 2*maxNesting/3 {
		s.fail("%s has an abstract type from which none is derived, or contains itself", e.Name)
		return
	}
	of := types[s.pick(len(types), depth, func(i int) int { return s.cost(types[i]) })]
	s.open(e.Name, e.Place)
	switch {
	case of != e.Type && of.Name.Local != "":
		s.attr(xsiType, s.prefixed(of.Name))
	case s.contents.Encoded:
		items := 0
		if item, array := s.isArray(of); array {
			items = arrayItems(s, of, item, depth)
		}
		s.encodingAttrs(&s.tagWriter, declared, of, false, items)
	}
	if !isAny(of) {
		s.attributes(of)
	}
	if e.Nillable && depth > 0 && (s.ends(depth) || s.cost(of) >= endless || !s.all && s.r.IntN(8) == 0) {
		s.attr(xsiNil, "true")
		s.inside()
	} else {
		s.inside()
		s.content(of, e, depth)
	}
	s.close(e.Name)
}

// arrayItems is how many items an array of SOAP's encoding has.
func arrayItems(s *sampler, of *xsd.TypeDef, item *xsd.ElementDecl, depth int) int {
	n, err := strconv.Atoi(strings.Trim(of.Dimensions, "[]"))
	switch {
	case err == nil:
		return min(n, maxItems)
	case s.ends(depth) || s.cost(item.Type) >= endless:
		return 0
	}
	return 1
}

func (s *sampler) fail(format string, args ...any) {
	if s.failed == nil {
		s.failed = fmt.Errorf(format, args...)
	}
}

func (s *sampler) attributes(of *xsd.TypeDef) {
	for _, a := range of.Attributes {
		if !a.Required && !s.all && s.r.IntN(2) == 0 ||
			s.contents.Encoded && isEncoding(a.Name) && !a.Required {
			continue
		}
		s.attr(a.Name, s.value(a.Type, a.Fixed, "the attribute "+a.Name.String()))
	}
}

func (s *sampler) value(t *xsd.Simple, fixed *string, of string) string {
	switch {
	case fixed != nil:
		return *fixed
	case t.Variety == xsd.Atomic && t.Builtin == "ID":
		s.ids++
		return "id" + strconv.Itoa(s.ids)
	case t.Variety == xsd.Atomic && t.Builtin == "IDREF" && s.ids > 0:
		return "id1"
	}
	text, ok := t.Sample(s.r)
	if !ok {
		s.fail("no value of the type of %s was found", of)
	}
	return text
}

// content writes what is in an element.
func (s *sampler) content(of *xsd.TypeDef, e *xsd.ElementDecl, depth int) {
	item, array := s.isArray(of)
	switch {
	case isAny(of):
		s.text("any")
	case array && len(s.model(of).order) == 0:
		for range arrayItems(s, of, item, depth) {
			s.element(&xsd.ElementDecl{Name: item.Name, Type: item.Type}, depth+1)
		}
	case of.Simple != nil:
		s.text(s.value(of.Simple, e.Fixed, e.Name.String()))
	case of.Particle != nil:
		s.particle(of.Particle, depth)
	}
}

// times is how often a particle occurs.
func (s *sampler) times(p *xsd.Particle, depth int) int {
	n := p.Min
	switch {
	case s.ends(depth) || s.particleCost(&xsd.Particle{
		Kind: p.Kind, Min: 1, Max: 1, Element: p.Element, Parts: p.Parts, Any: p.Any,
	}) >= endless:
	case s.all:
		n = max(n, 1)
	default:
		n += s.r.IntN(3)
	}
	if p.Max != xsd.Unbounded {
		n = min(n, p.Max)
	}
	return n
}

func (s *sampler) particle(p *xsd.Particle, depth int) {
	if p.Kind == xsd.AnyParticle {
		s.wild(p, depth)
		return
	}
	for range s.times(p, depth) {
		switch p.Kind {
		case xsd.ElementParticle:
			s.element(p.Element, depth+1)
		case xsd.Choice:
			if n := len(p.Parts); n > 0 {
				s.particle(p.Parts[s.pick(n, depth, func(i int) int { return s.particleCost(p.Parts[i]) })], depth)
			}
		case xsd.Sequence, xsd.All, xsd.AnyParticle:
			for _, part := range p.Parts {
				s.particle(part, depth)
			}
		}
	}
}

// wild writes the elements that a wildcard needs; it needs one mostly never.
func (s *sampler) wild(p *xsd.Particle, depth int) {
	for range p.Min {
		if p.Any.Process != "strict" {
			name := xsd.QName{Space: "urn:example:any", Local: "any"}
			for _, space := range p.Any.Namespaces {
				if space != "##any" && space != "##other" {
					name.Space = space
				}
			}
			if s.set.Element(name) == nil {
				s.open(name, xsd.Position{})
				s.inside()
				s.close(name)
				continue
			}
		}
		for _, name := range s.set.Elements() {
			if e := s.set.Element(name); p.Any.Allows(name.Space) && s.elementCost(e) < endless {
				s.element(e, depth+1)
				break
			}
		}
	}
}
