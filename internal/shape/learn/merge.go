package learn

import "slices"

// merger merges two drafts into one that both fit. Declarations of generated prefixes are paired on
// the way; a merge that fails takes that back.
type merger struct{ paired []*slot }

// draft gives the merged element, nil if the two have too little in common. Its arguments stay as
// they are, but for the pairing of slots.
func (m *merger) draft(a, b *draft) *draft {
	mark := len(m.paired)
	if d := m.try(a, b); d != nil {
		return d
	}
	m.undo(mark)
	return nil
}

// undo takes back the pairing of slots since there were mark.
func (m *merger) undo(mark int) {
	for _, s := range m.paired[mark:] {
		s.same = nil
	}
	m.paired = m.paired[:mark]
}

func (m *merger) try(a, b *draft) *draft {
	m.declarations(a, b)
	if !sameName(a.name, b.name) {
		return nil
	}
	d := &draft{name: a.name, raw: a.raw, any: a.any || b.any}
	var ok [3]bool
	d.empty, ok[0] = either(a.empty, b.empty)
	d.open, ok[1] = either(a.open, b.open)
	d.end, ok[2] = either(a.end, b.end)
	if ok != [3]bool{true, true, true} {
		return nil
	}
	var fit bool
	if d.attrs, fit = mergeAttributes(a.attrs, b.attrs); !fit {
		return nil
	}
	if !d.any && !m.content(d, a, b) {
		d.any = true
	}
	d.settle()
	return d
}

// either gives the text that is there, if not both are and differ.
func either(a, b string) (string, bool) {
	if a == "" {
		return b, true
	}
	return a, b == "" || a == b
}

// declarations pairs the generated prefixes that the two elements declare for the same namespace,
// in order.
func (m *merger) declarations(a, b *draft) {
	taken := map[*attribute]bool{}
	for _, y := range b.attrs {
		for _, x := range a.attrs {
			if x.declares == nil || y.declares == nil || taken[x] || x.name.uri != y.name.uri {
				continue
			}
			taken[x] = true
			if from, to := y.declares.find(), x.declares.find(); from != to {
				from.same = to
				m.paired = append(m.paired, from)
			}
			break
		}
	}
}

// content merges what stands inside. It gives false where nothing but open content fits both.
func (m *merger) content(d, a, b *draft) bool {
	if a.open == "" || b.open == "" {
		from := a
		if a.open == "" {
			from = b
		}
		d.leaf, d.leafType, d.isBlank, d.blank = from.leaf, from.leafType, from.isBlank, from.blank
		d.entries, d.tail = from.entries, from.tail
		return true
	}
	switch {
	case a.leaf && b.leaf:
		d.leaf, d.leafType = true, mergeTypes(a, b)
		if d.isBlank = a.isBlank && b.isBlank && a.blank == b.blank; d.isBlank {
			d.blank = a.blank
		}
		return true
	case a.leaf || b.leaf:
		leaf, other := a, b
		if b.leaf {
			leaf, other = b, a
		}
		if !leaf.isBlank {
			return false
		}
		for _, e := range other.entries {
			d.entries = append(d.entries, e.maybe())
		}
		d.tail = mergeGaps(other.tail, gap{text: leaf.blank})
		return true
	}
	d.tail = mergeGaps(a.tail, b.tail)
	return m.entries(d, a.entries, b.entries)
}

// entries aligns the elements inside and merges those that stand at the same place; of the others,
// two that stand between the same become a choice, the rest optional.
func (m *merger) entries(d *draft, a, b []*entry) bool {
	a = untangle(a, b)
	b = untangle(b, a)
	pairs, ok := align(len(a), len(b), func(i, j int) bool { return a[i].shares(b[j]) })
	if !ok {
		return false
	}
	i, j := 0, 0
	var loose []bool
	add := func(e *entry, isLoose bool) {
		d.entries = append(d.entries, e)
		loose = append(loose, isLoose)
	}
	rest := func(toI, toJ int) {
		if toI-i == 1 && toJ-j == 1 {
			if e := choose(a[i], b[j]); e != nil {
				add(e, false)
				i, j = i+1, j+1
			}
		}
		for ; i < toI; i++ {
			add(a[i].maybe(), true)
		}
		for ; j < toJ; j++ {
			add(b[j].maybe(), true)
		}
	}
	for _, p := range pairs {
		rest(p[0], p[1])
		e := m.entry(a[i], b[j])
		if e != nil {
			add(e, false)
			i, j = i+1, j+1
			continue
		}
		if a[i].element == nil || b[j].element == nil {
			return false
		}
		rest(i+1, j+1)
	}
	rest(len(a), len(b))
	m.lists(d, loose)
	return true
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

// add puts a form into an entry, as a further alternative if it is none of those; false: it cannot,
// and the entry is as it was.
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

// lists puts an array of a choice in place of the elements from the first to the last of one name,
// if that stands at several places and one of these is loose.
func (m *merger) lists(d *draft, loose []bool) {
	for i, e := range d.entries {
		loose[i] = loose[i] || e.isList()
	}
	for from := 0; from < len(d.entries); from++ {
		to := from
		for i := from; i <= to; i++ {
			for k := len(d.entries) - 1; k > to; k-- {
				if (to > from || loose[i] || loose[k]) && d.entries[i].shares(d.entries[k]) {
					to = k
				}
			}
		}
		if to == from {
			continue
		}
		if list := m.list(d.entries[from : to+1]); list != nil {
			d.entries = slices.Replace(d.entries, from, to+1, list)
			loose = slices.Replace(loose, from, to+1, true)
		}
	}
}

// list gives an array that all these elements are rows of, nil if there is none. One with too many
// alternatives may lack some.
func (m *merger) list(entries []*entry) *entry {
	mark := len(m.paired)
	o := entries[0].clone()
	o.array, o.optional = true, false
	for _, e := range entries[1:] {
		for form := range e.forms {
			if o.overfull() {
				return o
			}
			if !m.add(o, form) {
				m.undo(mark)
				return nil
			}
		}
	}
	return o
}

// loosen makes optional what may be absent by its declaration, and an array of what may repeat.
func (d *draft) loosen() {
	for _, a := range d.attrs {
		a.optional = a.optional || a.mayLack
	}
	for _, e := range d.entries {
		e.optional, e.array = e.optional || e.mayLack, e.array || e.mayRepeat
		for o := range e.forms {
			o.element.loosen()
		}
	}
}
