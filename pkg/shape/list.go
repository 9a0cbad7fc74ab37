package shape

import "slices"

// minRecurring is how many elements of one message come again behind others until they are a list without order. Fewer are taken for a sequence that has names twice, until another message has it otherwise: what stands at
// a place of its own in each message is remembered better.
const minRecurring = 8

// mayRecur tells elements in which names come again; of many ones it does not look.
func (d *draft) mayRecur() bool {
	const few = 64
	recurring := 0
	var seen uint64 // by a bit that names share rather by chance, if they are not the same
	for i, e := range d.entries {
		local := firstForm(e).element.name.local
		bit := uint64(1) << (len(local) * 11 & 63)
		if local != "" {
			bit = 1 << ((len(local)*11 + int(local[0]) + int(local[len(local)-1])*5) & 63)
		}
		if seen&bit != 0 && (len(d.entries) > few || slices.ContainsFunc(d.entries[:i], func(f *entry) bool { return firstForm(f).element.name.local == local })) {
			recurring++
		}
		seen |= bit
	}
	return recurring >= minRecurring
}

// gatherRecurring makes a list of elements that come again and again behind others. They are this message's own.
func (d *draft) gatherRecurring() {
	recurring, from, to := 0, len(d.entries), 0
	places := make(map[[3]string]int, min(len(d.entries), 2*maxAlternatives)) // where a name came first
	for i, e := range d.entries {
		name := firstForm(e).element.name.parts()
		if k, ok := places[name]; !ok {
			places[name] = i
		} else if e.shares(d.entries[k]) {
			recurring, from, to = recurring+1, min(from, k), i+1
		}
	}
	if recurring < minRecurring || len(places) > maxAlternatives {
		return // a sequence, until it comes otherwise
	}
	list := d.entries[from].clone()
	list.array, list.optional = true, false
	var m merger
	for _, e := range d.entries[from+1 : to] {
		for form := range e.forms {
			if o := list.find(form.gap, form.element); o != nil && fits(o.element, form.element) {
				absorb(o.element, form.element)
			} else if !m.add(list, form) || list.overfull() {
				return
			}
		}
	}
	d.entries = slices.Replace(d.entries, from, to, list)
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

// lists puts an array of a choice in place of the elements from the first to the last of one name, if that stands at several places and one of these is loose.
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

// list gives an array that all these elements are rows of, nil if there is none. One with too many alternatives may lack some.
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
