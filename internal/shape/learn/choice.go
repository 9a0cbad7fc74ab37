package learn

import "slices"

// alternative adds a form; one that is told by its type is tried before those of its name that are
// not.
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

// variants tells elements of one name that are better two: y has a type that x has not, and
// something else stands in it.
func variants(x, y *draft) bool {
	b := y.xsiType()
	i := slices.IndexFunc(x.attrs, isXSIType)
	if b == nil || i < 0 {
		return false
	}
	same := func(v []part) bool { return sameValue(x, y, v, b.fixed[0]) }
	if slices.ContainsFunc(x.attrs[i].fixed, same) {
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
		same := x.leafType == y.leafType || x.leafType.Numeric() && y.leafType.Numeric()
		return x.leaf && y.leaf && same || x.isBlank || y.isBlank
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

// choose makes a choice of what was always there at one place; nil if it may not have been, or is
// found to be the same.
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

// untangle replaces choices in a whose alternatives stand at several places of b by optional
// elements in that order: what comes together is no choice. It leaves those where something else in
// a stands between these places of b.
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
		places[i] = slices.IndexFunc(b, func(f *entry) bool { return f.find(o.gap, o.element) != nil })
		if places[i] >= 0 {
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
