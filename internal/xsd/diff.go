package xsd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Difference finds the first difference from another description: where it is, by names of
// elements, and what it is; "" if both describe the same messages.
func (c *Contents) Difference(is *Contents) string {
	if p := Prints(c, is); p[0] == p[1] {
		return ""
	}
	d := differ{seen: map[[2]*TypeDef]bool{}}
	switch {
	case !c.Encoded && is.Encoded:
		return "values became those of SOAP's encoding"
	case c.Encoded && !is.Encoded:
		return "values are no longer those of SOAP's encoding"
	case !slices.EqualFunc(c.Body, is.Body, sameName):
		return fmt.Sprintf("%s became %s", names(c.Body), names(is.Body))
	case !slices.EqualFunc(sorted(c.Headers), sorted(is.Headers), sameName):
		return fmt.Sprintf("header blocks: %s became %s", names(sorted(c.Headers)), names(sorted(is.Headers)))
	case (c.Type == nil) != (is.Type == nil):
		return fmt.Sprintf("Body: %s became %s", c.Type.describe(), is.Type.describe())
	}
	if at := d.typ(c.Type, is.Type, "Body"); at != "" {
		return at
	}
	for i, e := range c.Body {
		if at := d.element(e, is.Body[i], e.Name.Local); at != "" {
			return at
		}
	}
	for i, e := range sorted(c.Headers) {
		if at := d.element(e, sorted(is.Headers)[i], "Header/"+e.Name.Local); at != "" {
			return at
		}
	}
	return "its types refer to each other otherwise"
}

func sameName(a, b *ElementDecl) bool { return a.Name == b.Name }

func names(elements []*ElementDecl) string {
	var names []QName
	for _, e := range elements {
		names = append(names, e.Name)
	}
	return list(names)
}

func list(names []QName) string {
	var texts []string
	for _, n := range names {
		texts = append(texts, n.String())
	}
	return cmp.Or(strings.Join(texts, ", "), "nothing")
}

type differ struct{ seen map[[2]*TypeDef]bool }

func (d *differ) element(a, b *ElementDecl, path string) string {
	switch {
	case a.Name != b.Name:
		return fmt.Sprintf("%s: %s became %s", path, a.Name, b.Name)
	case a.Nillable != b.Nillable:
		return fmt.Sprintf("%s: nillable %t became %t", path, a.Nillable, b.Nillable)
	case a.Abstract != b.Abstract:
		return fmt.Sprintf("%s: abstract %t became %t", path, a.Abstract, b.Abstract)
	case supplied(a.Default, nil) != supplied(b.Default, nil):
		return path + ": the default changed"
	case supplied(nil, a.Fixed) != supplied(nil, b.Fixed):
		return path + ": the fixed value changed"
	case len(a.Members) != len(b.Members):
		return path + ": what may stand in its place changed"
	}
	if a.Type != nil && a.Type.Any && a.blocks() != b.blocks() {
		return path + ": the types that xsi:type may name changed"
	}
	if was, is := typeNames(a.Refused), typeNames(b.Refused); !slices.Equal(was, is) {
		return fmt.Sprintf("%s: xsi:type may not name: %s became %s", path, list(was), list(is))
	}
	for i := range a.Members {
		if at := d.element(a.Members[i], b.Members[i], path+"/"+a.Members[i].Name.Local); at != "" {
			return at
		}
	}
	return d.typ(a.Type, b.Type, path)
}

func (d *differ) typ(a, b *TypeDef, path string) string {
	if a == nil || b == nil || d.seen[[2]*TypeDef{a, b}] {
		return ""
	}
	d.seen[[2]*TypeDef{a, b}] = true
	switch was, is := a.describe(), b.describe(); {
	case was != is:
		return fmt.Sprintf("%s: %s became %s", path, was, is)
	case a.Simple != nil && b.Simple != nil && a.Simple.String() != b.Simple.String():
		return fmt.Sprintf("%s: %.100s became %.100s", path, a.Simple, b.Simple)
	case a.Abstract != b.Abstract:
		return fmt.Sprintf("%s: abstract %t became %t", path, a.Abstract, b.Abstract)
	case a.Mixed != b.Mixed:
		return path + ": text between elements"
	case a.AnyAttribute.canonical() != b.AnyAttribute.canonical():
		return path + ": other attributes"
	}
	if at := differentAttributes(a, b, path); at != "" {
		return at
	}
	if at := d.typ(a.Array, b.Array, path+"[]"); at != "" {
		return at
	}
	if at := d.particle(simplify(a.Particle), simplify(b.Particle), path); at != "" {
		return at
	}
	return d.derived(a, b, path)
}

// derived compares the types that xsi:type may name.
func (d *differ) derived(a, b *TypeDef, path string) string {
	was, is := typeNames(a.Derived), typeNames(b.Derived)
	if !slices.Equal(was, is) {
		return fmt.Sprintf("%s: xsi:type may name: %s became %s", path, list(was), list(is))
	}
	for i := range a.Derived {
		if at := d.typ(a.Derived[i], b.Derived[i], path+"("+was[i].Local+")"); at != "" {
			return at
		}
	}
	return ""
}

func typeNames(list []*TypeDef) (names []QName) {
	for _, t := range list {
		names = append(names, t.Name)
	}
	return names
}

func differentAttributes(a, b *TypeDef, path string) string {
	of := map[QName]*AttributeRule{}
	for _, x := range b.Attributes {
		of[x.Name] = x
	}
	for _, x := range a.Attributes {
		y := of[x.Name]
		delete(of, x.Name)
		switch {
		case y == nil:
			return fmt.Sprintf("%s/@%s: removed", path, x.Name.Local)
		case x.Required != y.Required:
			return fmt.Sprintf("%s/@%s: required %t became %t", path, x.Name.Local, x.Required, y.Required)
		case x.Type.String() != y.Type.String():
			return fmt.Sprintf("%s/@%s: %s became %s", path, x.Name.Local, x.Type.describe(), y.Type.describe())
		case supplied(x.Default, x.Fixed) != supplied(y.Default, y.Fixed):
			return fmt.Sprintf("%s/@%s: the value that is supplied changed", path, x.Name.Local)
		}
	}
	for _, x := range b.Attributes {
		if of[x.Name] != nil {
			return fmt.Sprintf("%s/@%s: added", path, x.Name.Local)
		}
	}
	return ""
}

func (d *differ) particle(a, b *Particle, path string) string {
	a, b = inSequence(a, b), inSequence(b, a)
	switch {
	case a == nil && b == nil:
		return ""
	case a == nil || b == nil || a.Kind != b.Kind:
		return path + ": another content model"
	}
	switch a.Kind {
	case ElementParticle:
		if a.Element.Name != b.Element.Name {
			return fmt.Sprintf("%s: %s became %s", path, a.Element.Name, b.Element.Name)
		}
		path += "/" + a.Element.Name.Local
	case Sequence, Choice, All:
		if what := differentParts(a.Parts, b.Parts); what != "" {
			return path + ": " + what
		}
	case AnyParticle:
		if a.Any.canonical() != b.Any.canonical() {
			return path + ": any element of other namespaces"
		}
	}
	if a.Min != b.Min || a.Max != b.Max {
		return fmt.Sprintf("%s: %s became %s", path, often(a), often(b))
	}
	if a.Kind == ElementParticle {
		return d.element(a.Element, b.Element, path)
	}
	for i := range a.Parts {
		if at := d.particle(a.Parts[i], b.Parts[i], path); at != "" {
			return at
		}
	}
	return ""
}

// inSequence is a particle as a sequence, where it is compared with one; nil is the empty one.
func inSequence(p, with *Particle) *Particle {
	switch {
	case with == nil || with.Kind != Sequence || p != nil && p.Kind != ElementParticle && p.Kind != AnyParticle:
		return p
	case p == nil:
		return &Particle{Kind: Sequence, Min: 1, Max: 1}
	}
	return &Particle{Kind: Sequence, Min: 1, Max: 1, Parts: []*Particle{p}}
}

// differentParts says which parts were added, removed or replaced, or stand in another order.
func differentParts(a, b []*Particle) string {
	was, is := partNames(a), partNames(b)
	gone := slices.DeleteFunc(slices.Clone(was), func(n string) bool { return slices.Contains(is, n) })
	added := slices.DeleteFunc(slices.Clone(is), func(n string) bool { return slices.Contains(was, n) })
	switch {
	case slices.Equal(was, is):
		return ""
	case len(gone) > 0 && len(added) > 0:
		return strings.Join(gone, ", ") + " became " + strings.Join(added, ", ")
	case len(gone) > 0:
		return strings.Join(gone, ", ") + " removed"
	case len(added) > 0:
		return strings.Join(added, ", ") + " added"
	case len(was) != len(is):
		return fmt.Sprintf("%d parts became %d", len(was), len(is))
	}
	return "the order: " + strings.Join(was, ", ") + " became " + strings.Join(is, ", ")
}

func partNames(parts []*Particle) (names []string) {
	for _, p := range parts {
		names = append(names, p.what())
	}
	return names
}

func often(p *Particle) string {
	if n := occurrence(p.Min, p.Max); n != "" {
		return n
	}
	return "once"
}

func (p *Particle) what() string {
	switch p.Kind {
	case ElementParticle:
		return p.Element.Name.String()
	case AnyParticle:
		return "any element"
	case Sequence, Choice, All:
	}
	return "a group of elements"
}
