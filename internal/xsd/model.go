// Package xsd compiles XML Schema 1.0 (W3C, 28 October 2004): documents to components, by name, as
// far as somebody asks for them. References are resolved when a component is asked for, so that
// documents may import each other in circles, and what nobody uses costs nothing but its parsing.
package xsd

import (
	"regexp"
	"slices"
)

// Unbounded is the MaxOccurs of what may repeat without end.
const Unbounded = -1

// TypeDef is a simple or complex type.
type TypeDef struct {
	// Name is zero for an anonymous type.
	Name  QName
	Place Position
	// Simple is the text of a simple type, or of a complex type with simple content; nil: the
	// content is elements.
	Simple *Simple
	// Particle is the content model of a complex type; nil: no element.
	Particle *Particle
	// Mixed: text may stand between the elements.
	Mixed bool
	// Attributes in the order of their names.
	Attributes []*AttributeRule
	// AnyAttribute: attributes beside these are allowed, from these namespaces.
	AnyAttribute *Wildcard
	Abstract     bool
	// Base is the type this one is derived from; nil: anyType.
	Base *TypeDef
	// Any: this is anyType.
	Any bool
	// Array is the type of the items of an array of SOAP-ENC, with its dimensions such as [,][];
	// nil: none.
	Array      *TypeDef
	Dimensions string
	// Derived are the global types that are derived from this one directly, which xsi:type may name
	// in its place, in the order of their names; only of global complex types.
	Derived []*TypeDef

	// how it is derived from its base, and which ways of derivation from it are blocked or final.
	how, block, final derivations
	redefines         *declaration // what a redefinition begins with; nil: it is none

	problems  []*Problem
	particles int       // of its content model so far
	anyOwn    *Wildcard // of the step of its derivation that is read; nil: it has none so far
}

// Variety is how the text of a simple type is made up.
type Variety uint8

// Varieties of simple types.
const (
	Atomic Variety = iota + 1
	List
	Union
)

// Simple is a simple type, with all facets of the steps that led to it.
type Simple struct {
	Variety Variety
	// Builtin is the local name of the built-in type that an atomic type restricts: one of the 44,
	// or anySimpleType.
	Builtin string
	Item    *Simple   // of a list
	Members []*Simple // of a union
	Facets  Facets

	members  int             // that it is made of, with those of these
	fixed    []string        // facets that no restriction may change
	values   map[string]bool // of its enumeration, as they are compared; nil: not yet made
	patterns [][]*regexp.Regexp
}

// Facets limit the values of a simple type; nil and zero: no limit.
type Facets struct {
	Length, MinLength, MaxLength *int
	// Patterns must all match: each is alternatives of one step.
	Patterns [][]string
	// Enumeration are the values of the last step that has some, as they are written.
	Enumeration                                            []string
	WhiteSpace                                             string
	MinInclusive, MaxInclusive, MinExclusive, MaxExclusive string
	TotalDigits, FractionDigits                            *int
}

// ElementDecl is an element declaration.
type ElementDecl struct {
	Name     QName
	Place    Position
	Type     *TypeDef
	Nillable bool
	Abstract bool
	// Default and Fixed are nil without one.
	Default, Fixed *string
	// Members are the elements that may stand in its place, with those of their own, in the order
	// of their names; only of global elements.
	Members []*ElementDecl
	// Refused are the types that xsi:type may not name, though they are derived from Type: the way
	// they are is blocked. In the order of their names.
	Refused []*TypeDef

	block, final derivations
	blocked      []*ElementDecl // that would be Members, and are blocked
	global       bool
	problems     []*Problem
	byName       map[QName]*ElementDecl // itself and Members, as far as they are not abstract; nil: not yet made
}

// AttributeRule is a use of an attribute.
type AttributeRule struct {
	Name           QName
	Type           *Simple
	Required       bool
	Default, Fixed *string

	// Place is that of the use; zero: of an attribute that the compiler makes.
	Place Position

	of *TypeDef // whose text Type is; nil: of an attribute that every processor knows
}

// TypeName is the name of the type; zero: it has none.
func (a *AttributeRule) TypeName() (name QName) {
	if a.of != nil {
		name = a.of.Name
	}
	return name
}

// ParticleKind is what a particle is.
type ParticleKind uint8

// Kinds of particles.
const (
	ElementParticle ParticleKind = iota + 1
	Sequence
	Choice
	All
	AnyParticle
)

// Particle is a part of a content model, with how often it occurs.
type Particle struct {
	Kind     ParticleKind
	Min, Max int
	Element  *ElementDecl // of ElementParticle
	Parts    []*Particle  // of Sequence, Choice and All
	Any      *Wildcard    // of AnyParticle

	starts *startIndex // of Choice and All; nil: not yet made
}

// Once is a particle of an element that occurs once.
func Once(e *ElementDecl) *Particle {
	return &Particle{Kind: ElementParticle, Min: 1, Max: 1, Element: e}
}

// Wildcard stands for elements or attributes of some namespaces.
type Wildcard struct {
	// Namespaces are "##any", "##other", or a list with "" for no namespace.
	Namespaces []string
	// Target is that of the schema, for "##other".
	Target string
	// Process is strict, lax or skip.
	Process string
}

// Allows reports whether a name's namespace is one of the wildcard's.
func (w *Wildcard) Allows(space string) bool {
	for _, n := range w.Namespaces {
		switch {
		case n == "##any", n == space, n == "##other" && space != "" && space != w.Target:
			return true
		}
	}
	return false
}

// IsDerived reports whether a type is another one, or is derived from it; all are from anyType.
func (t *TypeDef) IsDerived(from *TypeDef) bool {
	if from == nil || from.Any {
		return true
	}
	for ; t != nil && t != from; t = t.Base {
		if t.Any || t.Base == t {
			return false
		}
	}
	return t != nil
}

// blocks are the ways by which a type that xsi:type names may not be derived.
func (e *ElementDecl) blocks() derivations {
	if e.Type == nil {
		return e.block & named
	}
	return (e.block | e.Type.block) & named
}

// startIndex finds the part of a choice, or of all, that an element begins.
type startIndex struct {
	// of has the first part of each name that is an element without a substitution group, and
	// others the rest, in their order.
	of     map[QName]int
	others []int
	// empty: one of the former may be absent.
	empty bool
}

// named is the element or that of its substitution group that has the name; nil: none.
func (e *ElementDecl) named(name QName) *ElementDecl {
	if len(e.Members) == 0 {
		if name == e.Name && !e.Abstract {
			return e
		}
		return nil
	}
	if e.byName == nil {
		e.byName = map[QName]*ElementDecl{}
		for _, one := range append([]*ElementDecl{e}, e.Members...) {
			if e.byName[one.Name] == nil && !one.Abstract {
				e.byName[one.Name] = one
			}
		}
	}
	return e.byName[name]
}

// find is where an attribute stands, or would.
func (t *TypeDef) find(name QName) (at int, found bool) {
	return slices.BinarySearchFunc(t.Attributes, name, func(a *AttributeRule, name QName) int {
		return compareNames(a.Name, name)
	})
}
