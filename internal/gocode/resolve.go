package gocode

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hhfr/hhfr/internal/xsd"
)

// resolve finds the structs that cannot be carried: by themselves, or by what they must have.
// Optional fields of such structs are left out, which is noted.
func (b *builder) resolve() {
	for changed := true; changed; {
		changed = false
		for _, s := range b.all {
			if !s.finite && !slices.ContainsFunc(s.fields, (*structField).isEndless) {
				s.finite, changed = true, true
			}
		}
	}
	for _, s := range b.all {
		if !s.finite {
			s.wrong = append(s.wrong, Lack{s.place, "an element that contains itself in any case"})
		}
	}
	for changed := true; changed; {
		changed = false
		for _, s := range b.all {
			changed = s.refuse() || changed
		}
	}
	for _, s := range b.all {
		s.leaveOut()
	}
}

// isEndless reports whether a field always has a value, of a struct that is not known to be finite.
func (f *structField) isEndless() bool {
	return f.lack == nil && f.struc != nil && !f.struc.finite && !f.optional && !f.nillable
}

// missing is why a field cannot be carried; nil: it can.
func (f *structField) missing() *Lack {
	if f.lack == nil && f.struc != nil && len(f.struc.wrong) > 0 {
		f.lack = &f.struc.wrong[0]
	}
	return f.lack
}

// refuse finds whether a struct cannot be carried, and reports whether that is new.
func (s *structType) refuse() bool {
	if len(s.wrong) > 0 {
		return false
	}
	for _, f := range s.fields {
		if !f.optional && f.missing() != nil {
			s.wrong = append(s.wrong, *f.missing())
			return true
		}
	}
	for _, c := range s.choices {
		if c.required && !slices.ContainsFunc(c.branches, canBeCarried) {
			s.wrong = append(s.wrong, *lackOf(c.branches[0]))
			return true
		}
	}
	return false
}

// lackOf is why a branch of a choice cannot be carried; nil: it can.
func lackOf(branch []branchField) *Lack {
	for _, f := range branch {
		if l := f.missing(); l != nil && f.must {
			return l
		}
	}
	return nil
}

func canBeCarried(branch []branchField) bool { return lackOf(branch) == nil }

// leaveOut leaves out the fields that cannot be carried, and those of branches of choices that
// cannot.
func (s *structType) leaveOut() {
	for i := range slices.Backward(s.choices) { // those inside others come before them
		c := &s.choices[i]
		var dropped []branchField
		c.branches = slices.DeleteFunc(c.branches, func(branch []branchField) bool {
			if lackOf(branch) != nil {
				dropped = append(dropped, branch...)
			}
			return lackOf(branch) != nil
		})
		kept := slices.Concat(c.branches...)
		for _, f := range dropped {
			if !slices.ContainsFunc(kept, func(k branchField) bool { return k.structField == f.structField }) {
				f.lack = cmp.Or(f.lack, &Lack{f.place, "a branch of a choice that cannot be carried"})
			}
		}
	}
	s.choices = slices.DeleteFunc(s.choices, func(c choice) bool { return len(c.branches) < 2 })
	s.fields = slices.DeleteFunc(s.fields, func(f *structField) bool {
		l := f.missing()
		if l != nil {
			s.notes = append(s.notes, Lack{f.place, fmt.Sprintf("%s of %s: %s", f.xml.Local, s.title(), l.What)})
		}
		return l != nil
	})
}

// title names a struct to people.
func (s *structType) title() string {
	switch {
	case s.element != xsd.QName{}:
		return "element " + s.element.Local
	case s.of != nil && s.of.Name.Local != "":
		return "type " + s.of.Name.Local
	}
	return "element " + s.wanted[0]
}
