package shape

import (
	"slices"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// Siblings that differ are a choice: elements of other names at one place, or one element in forms that its xsi:type tells apart. A choice whose alternatives come together is none: in one order they are optional
// elements, in no order a list, which is an array of a choice.

// maxAlternatives bounds the alternatives of a choice, since a splitter tries one after the other; an element with more in it has open content.
const maxAlternatives = 32

// forms yields the alternatives of a choice, in the order in which they are tried, or the entry itself.
func (e *entry) forms(yield func(*entry) bool) {
	if e.element != nil {
		yield(e)
		return
	}
	for _, o := range e.alts {
		if !yield(o) {
			return
		}
	}
}

func (e *entry) overfull() bool { return len(e.alts) > maxAlternatives }

// find gives the form that an element would have, nil if it is none of them.
func (e *entry) find(before gap, d *draft) *entry {
	if e.element == nil {
		return e.findAmong(before, d)
	}
	if sameKey(e.gap, before, e.element.name, d.name) {
		return e
	}
	return nil
}

func (e *entry) findAmong(before gap, d *draft) *entry {
	for _, o := range e.alts {
		if sameKey(o.gap, before, o.element.name, d.name) && (!o.typed || sameXSIType(o.element, d)) {
			return o
		}
	}
	return nil
}

// clone copies an entry and the list of its alternatives.
func (e *entry) clone() *entry {
	o := *e
	o.alts = slices.Clone(e.alts)
	for i, alt := range o.alts {
		a := *alt
		o.alts[i] = &a
	}
	return &o
}

// add puts a form into an entry, as a further alternative if it is none of those; false: it cannot, and the entry is as it was.
func (m *merger) add(e, form *entry) bool {
	o := e.find(form.gap, form.element)
	if o == nil || !o.typed && variants(o.element, form.element) {
		return e.alternative(form, o != nil)
	}
	both := m.draft(o.element, form.element)
	if both == nil || o.typed && both.xsiType() == nil {
		return false
	}
	o.gap, o.element = form.gap, both
	return true
}

// alternative adds a form; one that is told by its type is tried before those of its name that are not.
func (e *entry) alternative(form *entry, typed bool) bool {
	if form.gap.value || e.element != nil && e.gap.value || e.overfull() {
		return false // nothing fixed would tell which one it is
	}
	if e.element != nil {
		e.alts = []*entry{{gap: e.gap, element: e.element}}
		e.gap, e.element = gap{}, nil
	}
	o := &entry{gap: form.gap, element: form.element, typed: typed}
	if typed {
		e.alts = slices.Insert(e.alts, 0, o)
	} else {
		e.alts = append(e.alts, o)
	}
	return true
}

// xsiType gives the xsi:type of an element if it has but one, and a guard reads it: all before it in the tag is markup, with one new prefix at most.
func (d *draft) xsiType() *attribute {
	prefixes := 0
	for _, a := range d.attrs {
		if a.declares != nil {
			prefixes++
		}
		if a.optional || len(a.fixed) != 1 || prefixes > 1 {
			return nil
		}
		if a.name.uri == xmlns.XSI && a.name.local == "type" {
			return a
		}
	}
	return nil
}

func isXSIType(a *attribute) bool {
	return a.fixed != nil && a.name.uri == xmlns.XSI && a.name.local == "type"
}

func sameXSIType(x, y *draft) bool {
	a, b := x.xsiType(), y.xsiType()
	return a != nil && b != nil && sameValue(x, y, a.fixed[0], b.fixed[0])
}

// sameValue compares values of markup in two tags, each of which may declare the prefix that it uses.
func sameValue(x, y *draft, v, w []part) bool {
	return slices.EqualFunc(v, w, func(p, q part) bool {
		if samePart(p, q) {
			return true
		}
		uri := x.declared(p.slot)
		return uri != "" && p.text == q.text && uri == y.declared(q.slot)
	})
}

// declared gives the namespace that a tag declares for a prefix, if it does.
func (d *draft) declared(s *slot) string {
	for _, a := range d.attrs {
		if s != nil && a.declares == s {
			return a.name.uri
		}
	}
	return ""
}

// variants tells elements of one name that are better two: y has a type that x has not, and something else stands in it.
func variants(x, y *draft) bool {
	b := y.xsiType()
	i := slices.IndexFunc(x.attrs, isXSIType)
	if b == nil || i < 0 || slices.ContainsFunc(x.attrs[i].fixed, func(v []part) bool { return sameValue(x, y, v, b.fixed[0]) }) {
		return false
	}
	return !alike(x, y)
}

// alike tells contents of which one has all that is in the other, with the same types.
func alike(x, y *draft) bool {
	switch {
	case x.any || y.any || x.open == "" || y.open == "":
		return true
	case x.leaf || y.leaf:
		return x.leaf && y.leaf && (x.leafType == y.leafType || x.leafType.numeric() && y.leafType.numeric()) || x.isBlank || y.isBlank
	}
	few, many := x.entries, y.entries
	if len(few) > len(many) {
		few, many = many, few
	}
	for _, f := range few {
		i := slices.IndexFunc(many, func(e *entry) bool { return meets(e, f) })
		if i < 0 {
			return false
		}
		for g := range f.forms {
			if !alike(many[i].find(g.gap, g.element).element, g.element) {
				return false
			}
		}
	}
	return true
}

// shares tells whether an element may stand at both places.
func (e *entry) shares(f *entry) bool {
	for g := range f.forms {
		if e.find(g.gap, g.element) != nil {
			return true
		}
	}
	return false
}

// entry merges what stands at the same place; nil if that cannot be.
func (m *merger) entry(a, b *entry) *entry {
	o := a.clone()
	o.optional, o.array = a.optional || b.optional, a.array || b.array
	mark := len(m.paired)
	for form := range b.forms {
		if !m.add(o, form) {
			m.undo(mark)
			return nil
		}
	}
	return o
}

// choose makes a choice of what was always there at one place; nil if it may not have been, or is found to be the same.
func choose(a, b *entry) *entry {
	if a.optional || a.array || b.optional || b.array || a.shares(b) {
		return nil
	}
	o := a.clone()
	for form := range b.forms {
		if !o.alternative(form, form.typed) {
			return nil
		}
	}
	return o
}

// untangle replaces choices in a whose alternatives stand at several places of b by optional elements in that order: what comes together is no choice. It leaves those where something else in a stands between these places of b.
func untangle(a, b []*entry) []*entry {
	var out []*entry
	for i, e := range a {
		parts := e.apart(a, b)
		if parts != nil && out == nil {
			out = slices.Clone(a[:i])
		}
		if parts == nil {
			parts = a[i : i+1]
		}
		if out != nil {
			out = append(out, parts...)
		}
	}
	if out == nil {
		return a
	}
	return out
}

// apart gives what a choice in a becomes, nil if it stays as it is.
func (e *entry) apart(a, b []*entry) (parts []*entry) {
	if e.element != nil || e.array {
		return nil
	}
	places := make([]int, len(e.alts))
	first, last := len(b), -1
	for i, o := range e.alts {
		if places[i] = slices.IndexFunc(b, func(f *entry) bool { return f.find(o.gap, o.element) != nil }); places[i] >= 0 {
			first, last = min(first, places[i]), max(last, places[i])
		}
	}
	if first >= last || slices.ContainsFunc(b[first+1:last], func(f *entry) bool {
		return slices.ContainsFunc(a, func(g *entry) bool { return g != e && g.shares(f) })
	}) {
		return nil
	}
	for k := first; k <= last; k++ {
		part := &entry{optional: true}
		for i, o := range e.alts {
			if places[i] == k || places[i] < 0 && k == first {
				part.alts = append(part.alts, o)
			}
		}
		switch len(part.alts) {
		case 0:
			continue
		case 1:
			part.gap, part.element, part.alts = part.alts[0].gap, part.alts[0].element, nil
		}
		parts = append(parts, part)
	}
	return parts
}
