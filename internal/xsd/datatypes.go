package xsd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
)

var builtinLists = map[string]string{"NMTOKENS": "NMTOKEN", "IDREFS": "IDREF", "ENTITIES": "ENTITY"}

// anyTypeName is the type of all that has none.
var anyTypeName = xsName("anyType")

// anything is the type without limits.
func (s *Set) anything() *TypeDef {
	return s.known("anyType", func() *TypeDef {
		return &TypeDef{
			Name:         anyTypeName,
			Any:          true,
			Mixed:        true,
			AnyAttribute: &Wildcard{Namespaces: []string{"##any"}},
		}
	})
}

func (s *Set) known(local string, make func() *TypeDef) *TypeDef {
	t := s.simple[local]
	if t == nil {
		t = make()
		s.simple[local] = t
	}
	return t
}

// builtin returns a built-in type; nil if there is none of the name.
func (s *Set) builtin(local string) *TypeDef {
	base, ok := builtins[local]
	switch {
	case local == anyTypeName.Local:
		return s.anything()
	case !ok:
		return nil
	}
	return s.known(local, func() *TypeDef {
		t := &TypeDef{Name: xsName(local), Simple: &Simple{Variety: Atomic, Builtin: local}}
		if item := builtinLists[local]; item != "" {
			one := 1
			t.Simple = &Simple{Variety: List, Item: s.builtin(item).Simple, Facets: Facets{MinLength: &one}}
		}
		if base != "" {
			t.Base, t.how = s.builtin(base), byRestriction
		}
		return t
	})
}

// typ returns a type that will be filled in; nil if there is none.
func (s *Set) typ(name QName) *TypeDef {
	if name.Space == xmlns.XSD {
		if t := s.builtin(name.Local); t != nil {
			return t
		}
	}
	if t := s.types[name]; t != nil {
		return t
	}
	g := s.globals[globalName{"type", name}]
	if g == nil {
		return s.encoded(name)
	}
	t := &TypeDef{Name: name, Place: g.node.Place, redefines: g.redefines}
	s.types[name] = t
	s.queue = append(s.queue, func() {
		s.complete(t)
		t.Derived = s.derived(name)
	})
	return t
}

// complete fills a global type in, if it is not.
func (s *Set) complete(t *TypeDef) {
	g := s.globals[globalName{"type", t.Name}]
	if g == nil || s.types[t.Name] != t || g.state == done {
		return
	}
	if g.state == busy {
		t.fail(g.node, "%s is derived from itself", t.Name)
		return
	}
	g.state = busy
	if g.wrong != nil {
		t.problems = append(t.problems, g.wrong)
	} else {
		s.define(t, g.node, g.doc)
	}
	g.state = done
}

// fail notes why something in the type could not be compiled.
func (t *TypeDef) fail(at *DocumentNode, format string, args ...any) {
	t.problems = append(t.problems, problemAt(at.Place, format, args...))
}

// inItself notes that a group contains itself.
func (t *TypeDef) inItself(at *DocumentNode, component string, name QName) {
	p := problemAt(at.Place, "%s %s contains itself", component, name)
	p.Kind, p.Component, p.Name = InItself, component, name
	t.problems = append(t.problems, p)
}

// reference resolves the type that an attribute names; an unknown one is anyType, with a problem.
func (s *Set) reference(n *DocumentNode, d *schemaDocument, text string, fail func(*Problem)) *TypeDef {
	name, wrong := d.name(n, text)
	if wrong != nil {
		fail(wrong)
		return s.anything()
	}
	if t := s.typ(name); t != nil {
		return t
	}
	if name.Space == "" { // without a prefix, where the target namespace is meant: many tools take that
		if t := s.typ(QName{d.target, name.Local}); t != nil {
			return t
		}
	}
	fail(s.Absent(n, "type", name))
	return s.anything()
}

// anonymous makes the type that stands inside a declaration.
func (s *Set) anonymous(n *DocumentNode, d *schemaDocument) *TypeDef {
	t := &TypeDef{Place: n.Place}
	s.queue = append(s.queue, func() { s.define(t, n, d) })
	return t
}

// define fills a type in from its element.
func (s *Set) define(t *TypeDef, n *DocumentNode, d *schemaDocument) {
	t.final = s.final(n, d)
	t.how = byRestriction // of anyType, unless it says otherwise
	if n.Name.Local == "simpleType" {
		t.Simple = s.simpleType(t, n, d)
		return
	}
	t.block = s.blocked(n, d)
	t.Abstract = isTrue(n.Attr("abstract"))
	t.Mixed = isTrue(n.Attr("mixed"))
	t.Base = s.anything()
	for _, c := range n.Children {
		if c.Name.Space != xmlns.XSD {
			continue
		}
		switch c.Name.Local {
		case "simpleContent":
			s.simpleContent(t, c, d)
			return
		case "complexContent":
			if v, ok := c.Get("mixed"); ok {
				t.Mixed = isTrue(v)
			}
			s.complexContent(t, c, d)
			return
		}
	}
	t.Particle = s.content(t, n, d)
	s.attributes(t, n, d)
}

// simpleType makes a simple type from its element.
func (s *Set) simpleType(t *TypeDef, n *DocumentNode, d *schemaDocument) *Simple {
	none := s.builtin("anySimpleType").Simple
	fail := func(p *Problem) { t.problems = append(t.problems, p) }
	inner := func(c *DocumentNode) *TypeDef {
		it := &TypeDef{Place: c.Place}
		s.define(it, c, d)
		t.problems = append(t.problems, it.problems...)
		return it
	}
	take := func(c *DocumentNode, of *TypeDef, how derivations) *Simple {
		s.complete(of)
		t.unlessFinal(c, of, how)
		for _, p := range of.problems {
			if !slices.Contains(t.problems, p) {
				t.problems = append(t.problems, p)
			}
		}
		switch {
		case of.Simple != nil:
			return of.Simple
		case !of.Any:
			t.fail(c, "%s is no simple type", of.Name)
		}
		return none
	}
	for _, c := range n.Children {
		if c.Name.Space != xmlns.XSD {
			continue
		}
		switch c.Name.Local {
		case "restriction":
			base := none
			if c.Attr("base") != "" {
				of := s.base(t, c, d)
				base = take(c, of, byRestriction)
				if !s.isBusy(of) {
					t.Base = of
				}
			} else if i := c.First(xsName("simpleType")); i != nil {
				t.Base = inner(i)
				base = t.Base.Simple
			} else {
				t.fail(c, "restriction of nothing")
			}
			return s.facets(t, base, c)
		case "list":
			if text := c.Attr("itemType"); text != "" {
				return listOf(take(c, s.reference(c, d, text, fail), byList))
			}
			if i := c.First(xsName("simpleType")); i != nil {
				return listOf(inner(i).Simple)
			}
			t.fail(c, "list of nothing")
			return none
		case "union":
			u := &Simple{Variety: Union}
			for text := range strings.FieldsSeq(c.Attr("memberTypes")) {
				u.Members = append(u.Members, take(c, s.reference(c, d, text, fail), byUnion))
			}
			for _, i := range c.All(xsName("simpleType")) {
				u.Members = append(u.Members, inner(i).Simple)
			}
			for _, m := range u.Members {
				u.members += 1 + m.members
			}
			switch {
			case len(u.Members) == 0:
				t.fail(c, "union of nothing")
			case u.members > maxMembers:
				t.fail(c, "a union of more than %d types", maxMembers)
				return none
			}
			return u
		}
	}
	t.fail(n, "simpleType without restriction, list or union")
	return none
}

func listOf(item *Simple) *Simple {
	return &Simple{Variety: List, Item: item, members: 1 + item.members}
}

// facets returns a simple type with the facets of a further step.
func (s *Set) facets(t *TypeDef, base *Simple, n *DocumentNode) *Simple {
	next := *base
	next.values, next.patterns, next.fixed = nil, nil, slices.Clone(base.fixed)
	f := &next.Facets
	var patterns, values []string
	for _, c := range n.Children {
		if c.Name.Space != xmlns.XSD {
			continue
		}
		value, stated := c.Get("value")
		s.compared += (1 + 16*base.members) * (1 + len(value)/16) // a value may have to be compared with each
		if stated && s.compared < maxComparedInAll {
			if why := base.narrower(c.Name.Local, value); why != "" {
				t.fail(c, "restriction of %s: %s", base.describe(), why)
			}
		}
		if isTrue(c.Attr("fixed")) {
			next.fixed = append(next.fixed, c.Name.Local)
		}
		number := func() *int {
			v, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil || v < 0 {
				t.fail(c, "%s of %q", c.Name.Local, value)
				return nil
			}
			return &v
		}
		switch c.Name.Local {
		case "length":
			f.Length = number()
		case "minLength":
			f.MinLength = number()
		case "maxLength":
			f.MaxLength = number()
		case "totalDigits":
			f.TotalDigits = number()
		case "fractionDigits":
			f.FractionDigits = number()
		case "whiteSpace":
			if value != "preserve" && value != "replace" && value != "collapse" {
				t.fail(c, "%s of %q", c.Name.Local, value)
				continue
			}
			f.WhiteSpace = value
		case "minInclusive":
			f.MinInclusive = value
		case "maxInclusive":
			f.MaxInclusive = value
		case "minExclusive":
			f.MinExclusive = value
		case "maxExclusive":
			f.MaxExclusive = value
		case "pattern":
			patterns = append(patterns, value)
		case "enumeration":
			values = append(values, value)
		}
	}
	if patterns != nil {
		f.Patterns = append(slices.Clone(f.Patterns), patterns)
	}
	if values != nil {
		f.Enumeration = values
	}
	if why := next.contradiction(); why != "" {
		t.fail(n, "%s", why)
	}
	return &next
}
