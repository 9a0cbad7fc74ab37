package xsd

import (
	"fmt"
	"slices"
	"strings"
)

// describe is a type in a few words.
func (t *TypeDef) describe() string {
	switch {
	case t == nil || t.Any:
		return "anything"
	case t.Array != nil:
		return "array of " + t.Array.describe() + " " + t.Dimensions
	case t.Simple != nil:
		return t.Simple.describe()
	case t.Mixed:
		return "text with elements"
	}
	return "elements"
}

func (s *Simple) describe() string {
	text := s.Builtin
	switch s.Variety {
	case Atomic:
	case List:
		text = "list of " + s.Item.describe()
	case Union:
		var members []string
		for _, m := range s.Members {
			members = append(members, m.describe())
		}
		text = strings.Join(slices.Compact(members), " or ")
	}
	switch values := s.Facets.Enumeration; {
	case len(values) > 4:
		text = fmt.Sprintf("one of %d values, such as %q", len(values), values[0])
	case len(values) > 0:
		text = fmt.Sprintf("one of %q", values)
	}
	return text
}

// occurrence is how often something occurs, as 0..1 or 1..*; "" for once.
func occurrence(least, most int) string {
	switch {
	case least == 1 && most == 1:
		return ""
	case most == Unbounded:
		return fmt.Sprintf("%d..*", least)
	}
	return fmt.Sprintf("%d..%d", least, most)
}
