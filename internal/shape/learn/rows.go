package learn

import "slices"

// Rows of an array are mostly alike. One that has no element, attribute or markup that those before
// it lack is taken into their draft without making another.

// fits reports whether b can be absorbed by a.
func fits(a, b *draft) bool {
	if a.empty != b.empty || a.open != b.open || a.end != b.end ||
		!sameName(a.name, b.name) || !slices.EqualFunc(a.attrs, b.attrs, fitsAttribute) {
		return false
	}
	if a.any {
		return true
	}
	if b.any || a.leaf != b.leaf {
		return false
	}
	i := 0
	for _, f := range b.entries {
		for i < len(a.entries) && !meets(a.entries[i], f) && (a.entries[i].optional || a.entries[i].array) {
			i++
		}
		if i == len(a.entries) || !meets(a.entries[i], f) || !fitsEntry(a.entries[i], f) {
			return false
		}
		if !a.entries[i].isList() {
			i++
		}
	}
	for _, e := range a.entries[i:] {
		if !e.optional && !e.array {
			return false
		}
	}
	return true
}

// meets reports whether f is at its place where e stands.
func meets(e, f *entry) bool {
	if e.element != nil && f.element != nil { // as most are
		return sameKey(e.gap, f.gap, e.element.name, f.element.name) && (!e.gap.value || !f.array && !f.optional)
	}
	return meetsAll(e, f)
}

// meetsAll is meets where one of the two is a choice.
func meetsAll(e, f *entry) bool {
	for g := range f.forms {
		if o := e.find(g.gap, g.element); o == nil || o.gap.value && (f.array || f.optional) {
			return false
		}
	}
	return true
}

func fitsEntry(e, f *entry) bool {
	if e.element != nil && f.element != nil {
		return fits(e.element, f.element)
	}
	return fitsAll(e, f)
}

func fitsAll(e, f *entry) bool {
	for g := range f.forms {
		if !fits(e.find(g.gap, g.element).element, g.element) {
			return false
		}
	}
	return true
}

func fitsAttribute(x, y *attribute) bool {
	if x.declares != nil || y.declares != nil || !x.like(y) {
		return false
	}
	for _, v := range y.fixed {
		if !slices.ContainsFunc(x.fixed, func(w []part) bool { return slices.EqualFunc(v, w, samePart) }) {
			return false
		}
	}
	return true
}

// absorb widens a by what is different in b, which fits it.
func absorb(a, b *draft) {
	for i, x := range a.attrs {
		x.typ = widen(x.typ, b.attrs[i].typ)
		x.optional = x.optional || b.attrs[i].optional
	}
	if a.any {
		return
	}
	if a.leaf {
		a.leafType = mergeTypes(a, b)
		if a.isBlank = a.isBlank && b.isBlank && a.blank == b.blank; !a.isBlank {
			a.blank = ""
		}
		return
	}
	a.tail = mergeGaps(a.tail, b.tail)
	i := 0
	for _, f := range b.entries {
		for !meets(a.entries[i], f) {
			a.entries[i].optional = true
			i++
		}
		e := a.entries[i]
		list := e.isList()
		e.array = e.array || f.array
		e.optional = e.optional || f.optional
		if e.element != nil && f.element != nil {
			absorb(e.element, f.element)
		} else {
			absorbAll(e, f)
		}
		if !list {
			i++
		}
	}
	for _, e := range a.entries[i:] {
		e.optional = true
	}
}

func absorbAll(e, f *entry) {
	for g := range f.forms {
		absorb(e.find(g.gap, g.element).element, g.element)
	}
}

// sameMarkup reports whether two elements differ in nothing but types of values, and how often rows
// of arrays in them came.
func sameMarkup(a, b *draft) bool {
	if a.empty != b.empty || a.open != b.open || a.end != b.end || a.any != b.any || a.leaf != b.leaf ||
		a.tail != b.tail || len(a.entries) != len(b.entries) || !sameName(a.name, b.name) ||
		!slices.EqualFunc(a.attrs, b.attrs, fitsAttribute) {
		return false
	}
	for i, e := range a.entries {
		if f := b.entries[i]; e.gap != f.gap || !sameMarkup(e.element, f.element) {
			return false
		}
	}
	return true
}
