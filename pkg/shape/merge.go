package shape

import "slices"

// merger merges two drafts into one that both fit. Declarations of generated prefixes are paired on the way; a merge that fails takes that back.
type merger struct{ paired []*slot }

// draft gives the merged element, nil if the two have too little in common. Its arguments stay as they are, but for the pairing of slots.
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

// declarations pairs the generated prefixes that the two elements declare for the same namespace, in order.
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

func sameName(a, b name) bool {
	if a.local != b.local || a.uri != b.uri || (a.slot == nil) != (b.slot == nil) {
		return false
	}
	return a.slot == nil && a.prefix == b.prefix || a.slot != nil && a.slot.find() == b.slot.find()
}

// content merges what stands inside. It gives false where nothing but open content fits both.
func (m *merger) content(d, a, b *draft) bool {
	if a.open == "" || b.open == "" {
		from := a
		if a.open == "" {
			from = b
		}
		d.leaf, d.leafType, d.isBlank, d.blank, d.entries, d.tail = from.leaf, from.leafType, from.isBlank, from.blank, from.entries, from.tail
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

func (e *entry) maybe() *entry {
	o := *e
	o.optional = true
	return &o
}

func mergeGaps(a, b gap) gap {
	if a.value || b.value || a.text != b.text {
		return gap{value: true}
	}
	return a
}

// mergeTypes widens the types of two leaves; an empty one fits any, at the price of an exception.
func mergeTypes(a, b *draft) Type {
	switch {
	case a.leafType == b.leafType, b.isBlank && b.blank == "":
		return a.leafType
	case a.isBlank && a.blank == "":
		return b.leafType
	}
	return widen(a.leafType, b.leafType)
}

func widen(a, b Type) Type {
	switch {
	case a == b:
		return a
	case a.numeric() && b.numeric():
		return max(a, b, TypeDecimal) // TypeScientific if one is
	}
	return TypeText
}

// entries aligns the elements inside and merges those that stand at the same place; of the others, two that stand between the same become a choice, the rest optional.
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

// maxAlign bounds the work of one alignment.
const maxAlign = 1 << 18

// align gives a longest common subsequence of two lists as pairs of indexes.
func align(n, k int, same func(i, j int) bool) (pairs [][2]int, ok bool) {
	from := 0
	for from < n && from < k && same(from, from) {
		pairs = append(pairs, [2]int{from, from})
		from++
	}
	rows, cols := n-from, k-from
	if rows == 0 || cols == 0 {
		return pairs, true
	}
	if rows*cols > maxAlign {
		return nil, false
	}
	longest := make([]uint16, (rows+1)*(cols+1))
	at := func(i, j int) *uint16 { return &longest[i*(cols+1)+j] }
	for i := rows - 1; i >= 0; i-- {
		for j := cols - 1; j >= 0; j-- {
			if *at(i, j) = max(*at(i+1, j), *at(i, j+1)); same(from+i, from+j) {
				*at(i, j) = *at(i+1, j+1) + 1
			}
		}
	}
	for i, j := 0, 0; i < rows && j < cols; {
		switch {
		case same(from+i, from+j):
			pairs = append(pairs, [2]int{from + i, from + j})
			i, j = i+1, j+1
		case *at(i+1, j) >= *at(i, j+1):
			i++
		default:
			j++
		}
	}
	return pairs, true
}

// mergeAttributes aligns attributes by name and layout; the values of markup are gathered, types widened.
func mergeAttributes(a, b []*attribute) (merged []*attribute, ok bool) {
	pairs, ok := align(len(a), len(b), func(i, j int) bool { return a[i].like(b[j]) })
	if !ok {
		return nil, false
	}
	i, j := 0, 0
	rest := func(toI, toJ int) {
		for ; i < toI; i++ {
			merged = append(merged, a[i].maybe())
		}
		for ; j < toJ; j++ {
			merged = append(merged, b[j].maybe())
		}
	}
	for _, p := range pairs {
		rest(p[0], p[1])
		x, y := *a[i], b[j]
		x.optional = x.optional || y.optional
		x.typ = widen(x.typ, y.typ)
		for _, v := range y.fixed {
			if !slices.ContainsFunc(x.fixed, func(w []part) bool { return slices.EqualFunc(v, w, samePart) }) {
				x.fixed = append(x.fixed[:len(x.fixed):len(x.fixed)], v)
			}
		}
		merged = append(merged, &x)
		i, j = i+1, j+1
	}
	rest(len(a), len(b))
	return merged, len(merged) <= maxEntries && !slices.ContainsFunc(merged, func(x *attribute) bool { return len(x.fixed) > maxFixed })
}

// maxFixed bounds the values of one attribute that are markup.
const maxFixed = 64

func (a *attribute) maybe() *attribute {
	o := *a
	o.optional = true
	return &o
}

func (a *attribute) like(b *attribute) bool {
	return a.lead == b.lead && a.eq == b.eq && a.quote == b.quote && (a.fixed == nil) == (b.fixed == nil) && sameName(a.name, b.name)
}

func samePart(a, b part) bool { return a.text == b.text && a.slot.find() == b.slot.find() }
