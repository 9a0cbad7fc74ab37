package xsd

import "slices"

// The namespaces of a wildcard that are no names.
const (
	anyNamespace   = "##any"
	otherNamespace = "##other"
)

func (w *Wildcard) is(kind string) bool { return slices.Contains(w.Namespaces, kind) }

// union is what either of two wildcards allows, as in an extension of a base that has one (XML
// Schema part 1, section 3.10.6); the process is that of w. Either may be nil.
func (w *Wildcard) union(o *Wildcard) *Wildcard {
	switch {
	case w == nil:
		return o
	case o == nil, w.is(anyNamespace):
		return w
	case o.is(anyNamespace):
		return &Wildcard{Namespaces: []string{anyNamespace}, Process: w.Process}
	case w.is(otherNamespace) && o.is(otherNamespace):
		if w.Target == o.Target {
			return w
		}
		return &Wildcard{Namespaces: []string{otherNamespace}, Process: w.Process} // all but none
	case w.is(otherNamespace):
		return w.orList(o, w.Process)
	case o.is(otherNamespace):
		return o.orList(w, w.Process)
	}
	list := slices.Concat(w.Namespaces, o.Namespaces)
	slices.Sort(list)
	return &Wildcard{Namespaces: slices.Compact(list), Target: w.Target, Process: w.Process}
}

// orList is the union of ##other and a list. One that cannot be expressed is all.
func (w *Wildcard) orList(list *Wildcard, process string) *Wildcard {
	target := slices.Contains(list.Namespaces, w.Target)
	switch none := slices.Contains(list.Namespaces, ""); {
	case none:
		return &Wildcard{Namespaces: []string{anyNamespace}, Process: process}
	case target:
		return &Wildcard{Namespaces: []string{otherNamespace}, Process: process}
	}
	return &Wildcard{Namespaces: w.Namespaces, Target: w.Target, Process: process}
}

// intersection is what both of two wildcards allow, as those of attribute groups in one type; the
// process is that of w. Either may be nil, which is no restriction.
func (w *Wildcard) intersection(o *Wildcard) *Wildcard {
	switch {
	case w == nil:
		return o
	case o == nil, o.is(anyNamespace):
		return w
	case w.is(anyNamespace):
		return &Wildcard{Namespaces: o.Namespaces, Target: o.Target, Process: w.Process}
	case w.is(otherNamespace) && o.is(otherNamespace):
		if w.Target == "" {
			return &Wildcard{Namespaces: o.Namespaces, Target: o.Target, Process: w.Process}
		}
		return w // of two targets both are left out, which cannot be expressed
	case w.is(otherNamespace):
		return o.within(w, w.Process)
	}
	return w.within(o, w.Process)
}

// within is what a list has in common with another wildcard.
func (w *Wildcard) within(o *Wildcard, process string) *Wildcard {
	var list []string
	for _, space := range w.Namespaces {
		if o.Allows(space) {
			list = append(list, space)
		}
	}
	return &Wildcard{Namespaces: list, Target: w.Target, Process: process}
}

// isWithin reports whether a wildcard allows no more than another one.
func (w *Wildcard) isWithin(o *Wildcard) bool {
	switch {
	case !w.isAsStrict(o):
		return false
	case o.is(anyNamespace):
		return true
	case w.is(anyNamespace):
		return false
	case w.is(otherNamespace):
		return o.is(otherNamespace) && (o.Target == w.Target || o.Target == "")
	}
	return !slices.ContainsFunc(w.Namespaces, func(space string) bool { return !o.Allows(space) })
}

// isAsStrict reports whether what a wildcard allows is compared at least as strictly as by another
// one.
func (w *Wildcard) isAsStrict(o *Wildcard) bool {
	order := []string{"skip", "lax", "strict"}
	return slices.Index(order, w.Process) >= slices.Index(order, o.Process)
}
