package xsd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// String is the type as a canonical form has it: one without facets by its name alone.
func (s *Simple) String() string {
	var b strings.Builder
	switch s.Variety {
	case Atomic:
		b.WriteString(s.Builtin)
	case List:
		b.WriteString("list(" + s.Item.String() + ")")
	case Union:
		b.WriteString("union(")
		for i, m := range s.Members {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(m.String())
		}
		b.WriteByte(')')
	}
	if facets := s.facets(); len(facets) > 0 {
		b.WriteString("[" + strings.Join(facets, " ") + "]")
	}
	return b.String()
}

// facets are those that limit a simple type, as they are written.
func (s *Simple) facets() (list []string) {
	f := &s.Facets
	for _, n := range []struct {
		word  string
		value *int
	}{
		{"length", f.Length}, {"minLength", f.MinLength}, {"maxLength", f.MaxLength}, {"totalDigits", f.TotalDigits},
		{"fractionDigits", f.FractionDigits},
	} {
		if n.value != nil {
			list = append(list, n.word+" "+strconv.Itoa(*n.value))
		}
	}
	for _, v := range [][2]string{
		{"minInclusive", f.MinInclusive}, {"maxInclusive", f.MaxInclusive}, {"minExclusive", f.MinExclusive},
		{"maxExclusive", f.MaxExclusive},
	} {
		if v[1] != "" {
			list = append(list, v[0]+" "+quote(strings.TrimSpace(v[1])))
		}
	}
	if how := s.whiteSpace(); how != (&Simple{Variety: s.Variety, Builtin: s.Builtin}).whiteSpace() {
		list = append(list, "whiteSpace "+how)
	}
	for _, step := range f.Patterns {
		list = append(list, "pattern("+quoted(step)+")")
	}
	if f.Enumeration != nil {
		list = append(list, "values("+quoted(f.Enumeration)+")")
	}
	return list
}

// quoted writes texts in the order of what is written, each once.
func quoted(texts []string) string {
	var list []string
	for _, t := range texts {
		list = append(list, quote(t))
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}

// quote writes a text.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
