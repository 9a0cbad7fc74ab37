package learn

import "slices"

// minRecurring is how many elements of one message come again behind others until they are a list
// without order. Fewer are taken for a sequence that has names twice, until another message has it
// otherwise: what stands at a place of its own in each message is remembered better.
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
		same := func(f *entry) bool { return firstForm(f).element.name.local == local }
		if seen&bit != 0 && (len(d.entries) > few || slices.ContainsFunc(d.entries[:i], same)) {
			recurring++
		}
		seen |= bit
	}
	return recurring >= minRecurring
}

// gatherRecurring makes a list of elements that come again and again behind others. They are this
// message's own.
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
