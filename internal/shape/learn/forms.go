package learn

import (
	"slices"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// Siblings that differ are a choice: elements of other names at one place, or one element in forms
// that its xsi:type tells apart. A choice whose alternatives come together is none: in one order
// they are optional elements, in no order a list, which is an array of a choice.

// forms yields the alternatives of a choice, in the order in which they are tried, or the entry
// itself.
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

// isList tells a choice that repeats: elements behind each other that differ are all its rows.
func (e *entry) isList() bool { return e.array && e.element == nil }

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

// xsiType gives the xsi:type of an element if it has but one, and a guard reads it: all before it
// in the tag is markup, with one new prefix at most.
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

// sameValue compares values of markup in two tags, each of which may declare the prefix that it
// uses.
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

// shares reports whether an element may stand at both places.
func (e *entry) shares(f *entry) bool {
	for g := range f.forms {
		if e.find(g.gap, g.element) != nil {
			return true
		}
	}
	return false
}

func firstForm(e *entry) *entry {
	if e.element == nil {
		return e.alts[0]
	}
	return e
}

// parts are the same for the same name.
func (n name) parts() [3]string {
	if n.slot != nil {
		return [3]string{n.uri, n.local}
	}
	return [3]string{n.uri, n.local, n.prefix}
}

func (e *entry) maybe() *entry {
	o := *e
	o.optional = true
	return &o
}

// size is about what the element takes in memory, its texts included, in bytes.
func (d *draft) size() int {
	const element, attr, value = 512, 384, 96
	n := element + len(d.attrs)*attr
	for _, a := range d.attrs {
		n += len(a.fixed) * value
	}
	for _, e := range d.entries {
		for o := range e.forms {
			n += o.element.size()
		}
	}
	return n
}

// settle gives up on content that no sequence of guarded parts describes.
func (d *draft) settle() {
	forms := 0
	for _, e := range d.entries {
		forms += max(1, len(e.alts))
		if e.gap.value && (e.optional || e.array) || e.overfull() {
			d.any = true // nothing fixed would tell whether it is there, or too much
		}
	}
	if forms > maxEntries {
		d.any = true
	}
	if d.any {
		d.leaf, d.entries, d.tail = false, nil, gap{}
	}
}
