package xsd

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// restricts checks, when all is filled in, that a complex type that restricts another allows no
// more than that (XML Schema part 1, section 3.4.6). One that does is refused with whatever uses
// it.
func (s *Set) restricts(t, base *TypeDef, step *DocumentNode) {
	if base.Any || base.Array != nil || isEncoding(base.Name.Space) || s.isSimple(base) {
		return // SOAP's encoding is more of a convention than a schema
	}
	s.checks = append(s.checks, func() {
		r := restriction{set: s, fail: func(at Position, format string, args ...any) {
			if at == (Position{}) {
				at = step.Place
			}
			t.problems = append(t.problems, problemAt(at, "%s is no restriction of %s: %s", t.title(), base.title(),
				fmt.Sprintf(format, args...)))
		}}
		r.types(t, base)
	})
}

// isSimple reports whether a type is a simple one, to which WSDLs of SOAP in DIME add attributes by
// a restriction.
func (s *Set) isSimple(t *TypeDef) bool {
	if t.Name.Space == xmlns.XSD {
		return true
	}
	g := s.globals[globalName{"type", t.Name}]
	return g != nil && g.node.Name.Local == "simpleType"
}

// title is the name of a type.
func (t *TypeDef) title() string {
	if t.Name.Local == "" {
		return "the type"
	}
	return t.Name.String()
}

// restriction compares complex types with what they restrict.
type restriction struct {
	set *Set
	// fail notes that one allows more, at the place of an attribute or element, if that has one.
	fail func(at Position, format string, args ...any)
	// around are pairs of types that are being compared: they may contain themselves.
	around map[[2]*TypeDef]bool
}

func (r *restriction) types(t, base *TypeDef) {
	r.attributes(t, base)
	r.wildcards(t.AnyAttribute, base.AnyAttribute)
	r.contents(t, base)
}

func (r *restriction) attributes(t, base *TypeDef) {
	for _, a := range t.Attributes {
		at, there := base.find(a.Name)
		if !there {
			if base.AnyAttribute == nil || !base.AnyAttribute.Allows(a.Name.Space) {
				r.fail(a.Place, "that has no attribute %s", a.Name)
			}
			continue
		}
		switch was := base.Attributes[at]; {
		case a == was:
		case was.Required && !a.Required:
			r.fail(a.Place, "the attribute %s is required there", a.Name)
		case !sameFixed(was.Fixed, a.Fixed, was.Type):
			r.fail(a.Place, "the attribute %s is always %.40q there", a.Name, *was.Fixed)
		case !r.narrows(a.of, was.of):
			r.fail(a.Place, "the type of the attribute %s is not derived from the one there", a.Name)
		}
	}
	for _, was := range base.Attributes {
		if _, there := t.find(was.Name); !there && was.Required {
			r.fail(Position{}, "the attribute %s is required there", was.Name)
		}
	}
}

func (r *restriction) wildcards(own, base *Wildcard) {
	switch {
	case own == nil || own == base:
	case base == nil:
		r.fail(Position{}, "that has no anyAttribute")
	case !own.isWithin(base):
		r.fail(Position{}, "the anyAttribute there allows less")
	}
}

// sameFixed reports whether what always stands in a base is what always stands in a restriction.
func sameFixed(base, own *string, of *Simple) bool {
	return base == nil || own != nil && of.normalize(*own) == of.normalize(*base)
}

func (r *restriction) contents(t, base *TypeDef) {
	switch {
	case t.Simple != nil && base.Simple != nil:
		if t.Simple.Variety == Atomic && base.Simple.Variety == Atomic && base.Simple.Builtin != "anySimpleType" &&
			!isBuiltin(t.Simple.Builtin, base.Simple.Builtin) {
			r.fail(Position{}, "%s is not derived from %s", t.Simple.describe(), base.Simple.describe())
		}
	case t.Simple != nil:
		if !base.Mixed || base.Particle != nil && !base.Particle.mayBeAbsent() {
			r.fail(Position{}, "that needs elements")
		}
	case base.Simple != nil:
		r.fail(Position{}, "that has text alone")
	case t.Mixed && !base.Mixed:
		r.fail(Position{}, "that has no text between elements")
	default:
		r.particles(t, base)
	}
}

// narrows reports whether a type is another one, or is derived from it by restrictions alone. One
// without a name only has to allow no more.
func (r *restriction) narrows(t, base *TypeDef) bool {
	switch {
	case t == base || t == nil || base == nil || base.Any:
		return true
	case base.Simple == r.set.builtin("anySimpleType").Simple:
		return t.Simple != nil
	case t.IsDerived(base):
		ways, _ := r.set.since(t, base)
		return ways&byExtension == 0
	case base.Simple != nil && base.Simple.Variety == Union && t.isMember(base.Simple):
		return true
	case t.Name.Local != "" || t.Any:
		return false
	case t.Simple != nil && base.Simple != nil && len(t.Attributes) == 0 && len(base.Attributes) == 0:
		return t.Simple.String() == base.Simple.String()
	}
	return r.allowsNoMore(t, base)
}

// isMember reports whether a type is derived from a member of a union.
func (t *TypeDef) isMember(of *Simple) bool {
	for _, m := range of.Members {
		for at := t; at != nil && at.Simple != nil && at.Base != at; at = at.Base {
			if at.Simple == m {
				return true
			}
		}
		if m.Variety == Union && t.isMember(m) {
			return true
		}
	}
	return false
}

// allowsNoMore compares types of which none restricts the other by what they contain.
func (r *restriction) allowsNoMore(t, base *TypeDef) bool {
	pair := [2]*TypeDef{t, base}
	if r.around[pair] {
		return true
	}
	inner := restriction{set: r.set, around: map[[2]*TypeDef]bool{pair: true}}
	for p := range r.around {
		inner.around[p] = true
	}
	same := true
	inner.fail = func(Position, string, ...any) { same = false }
	inner.types(t, base)
	return same
}
