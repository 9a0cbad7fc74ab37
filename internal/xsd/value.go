package xsd

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// lexical are the forms of the built-in types whose values not any text is (XML Schema part 2,
// section 3); those that are derived from one of these have its form. Most programs that start look
// at no value.
var lexical = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"boolean":      whole(`true|false|1|0`),
		"decimal":      whole(`[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)`),
		"integer":      whole(`[+-]?[0-9]+`),
		"float":        whole(`[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|-?INF|NaN`),
		"double":       whole(`[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|-?INF|NaN`),
		"duration":     whole(`-?P([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?`),
		"dateTime":     whole(date + `T` + hours + zone),
		"time":         whole(hours + zone),
		"date":         whole(date + zone),
		"gYearMonth":   whole(`-?[0-9]{4,}-(0[1-9]|1[0-2])` + zone),
		"gYear":        whole(`-?[0-9]{4,}` + zone),
		"gMonthDay":    whole(`--(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])` + zone),
		"gDay":         whole(`---(0[1-9]|[12][0-9]|3[01])` + zone),
		"gMonth":       whole(`--(0[1-9]|1[0-2])(--)?` + zone),
		"hexBinary":    whole(`([0-9a-fA-F]{2})*`),
		"base64Binary": whole(`(([A-Za-z0-9+/] ?){4})*(([A-Za-z0-9+/] ?){3}=|([A-Za-z0-9+/] ?){2}= ?=)?`),
		"language":     whole(`[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*`),
		"NMTOKEN":      whole(`[\p{L}\p{N}\p{M}._:·-]+`),
		"Name":         whole(`[\p{L}_:][\p{L}\p{N}\p{M}._:·-]*`),
		"NCName":       whole(`[\p{L}_][\p{L}\p{N}\p{M}._·-]*`),
		"QName":        whole(`([\p{L}_][\p{L}\p{N}\p{M}._·-]*:)?[\p{L}_][\p{L}\p{N}\p{M}._·-]*`),
	}
})

const (
	date  = `-?[0-9]{4,}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])`
	hours = `(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?|24:00:00(\.0+)?)`
	zone  = `(Z|[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00))?`
)

func whole(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) }

// ranges are the least and the greatest value of the integers that have one; "": none.
var ranges = map[string][2]string{
	"byte": {"-128", "127"}, "short": {"-32768", "32767"}, "int": {"-2147483648", "2147483647"},
	"long": {"-9223372036854775808", "9223372036854775807"}, "unsignedByte": {"0", "255"},
	"unsignedShort": {"0", "65535"}, "unsignedInt": {"0", "4294967295"}, "unsignedLong": {"0", "18446744073709551615"},
	"nonNegativeInteger": {"0", ""}, "positiveInteger": {"1", ""}, "nonPositiveInteger": {"", "0"},
	"negativeInteger": {"", "-1"},
}

// Check says why a text is no value of the type; "" if it is one.
func (s *Simple) Check(text string) string {
	text = s.normalize(text)
	if why := s.checkForm(text); why != "" {
		return why
	}
	return s.checkFacets(text)
}

// whiteSpace is how white space is processed: preserve, replace or collapse.
func (s *Simple) whiteSpace() string {
	switch how := s.Facets.WhiteSpace; {
	case how != "":
		return how
	case s.Variety == Atomic && (s.Builtin == "string" || s.Builtin == "anySimpleType"):
		return "preserve"
	case s.Variety == Atomic && s.Builtin == "normalizedString":
		return "replace"
	}
	return "collapse"
}

// normalize processes white space.
func (s *Simple) normalize(text string) string {
	switch s.whiteSpace() {
	case "replace":
		return strings.NewReplacer("\t", " ", "\n", " ", "\r", " ").Replace(text)
	case "collapse":
		return strings.Join(strings.Fields(text), " ")
	}
	return text
}

func (s *Simple) checkForm(text string) string {
	switch s.Variety {
	case List:
		for item := range strings.FieldsSeq(text) {
			if why := s.Item.Check(item); why != "" {
				return why
			}
		}
		return ""
	case Union:
		for _, m := range s.Members {
			if m.Check(text) == "" {
				return ""
			}
		}
		return fmt.Sprintf("%.40q is no %s", text, s.describe())
	case Atomic:
	}
	for of := s.Builtin; of != ""; of = builtins[of] {
		if form := lexical()[of]; form != nil {
			if !form.MatchString(text) || of == "duration" && strings.ContainsAny(text[len(text)-1:], "PT") {
				return fmt.Sprintf("%.40q is no %s", text, s.Builtin)
			}
			break
		}
	}
	if limits, ok := ranges[s.Builtin]; ok && !within(text, limits[0], limits[1]) {
		return fmt.Sprintf("%.40q is no %s", text, s.Builtin)
	}
	return ""
}

// within reports whether a number is not below the least nor above the most; "": there is no limit.
func within(text, least, most string) bool {
	return (least == "" || compare(text, least) >= 0) && (most == "" || compare(text, most) <= 0)
}

// compare compares decimals. Values that are none are equal to all.
func compare(a, b string) int {
	x, okA := new(big.Rat).SetString(strings.TrimPrefix(a, "+"))
	y, okB := new(big.Rat).SetString(strings.TrimPrefix(b, "+"))
	if !okA || !okB {
		return 0
	}
	return x.Cmp(y)
}

func (s *Simple) checkFacets(text string) string {
	f := &s.Facets
	if f.Enumeration != nil && !s.enumerates(text) {
		return fmt.Sprintf("%.40q is not among its %d values, such as %.100q", text, len(f.Enumeration),
			f.Enumeration[:min(len(f.Enumeration), 6)])
	}
	for i, step := range s.compiled() {
		if !matchesOne(step, text) {
			return fmt.Sprintf("%.40q does not match %.60q", text, f.Patterns[i][0])
		}
	}
	length := s.length(text)
	switch {
	case f.Length != nil && length != *f.Length:
		return fmt.Sprintf("%.40q has the length %d, not %d", text, length, *f.Length)
	case f.MinLength != nil && length < *f.MinLength:
		return fmt.Sprintf("%.40q has the length %d, at least %d is needed", text, length, *f.MinLength)
	case f.MaxLength != nil && length > *f.MaxLength:
		return fmt.Sprintf("%.40q has the length %d, at most %d is allowed", text, length, *f.MaxLength)
	}
	if s.outside(text) {
		return text + " is out of its range"
	}
	if s.Variety != Atomic || len(text) > maxDigits || primitive(s.Builtin) != "decimal" {
		return ""
	}
	return s.checkDigits(text)
}

// outside reports whether a value is below the least or above the greatest one.
func (s *Simple) outside(text string) bool {
	f := &s.Facets
	beyond := func(limit string, sign int, on bool) bool {
		if limit == "" {
			return false
		}
		c, known := s.order(text, s.normalize(limit))
		return known && (c == sign || on && c == 0)
	}
	return beyond(f.MinInclusive, -1, false) || beyond(f.MaxInclusive, 1, false) ||
		beyond(f.MinExclusive, -1, true) || beyond(f.MaxExclusive, 1, true)
}

func (s *Simple) checkDigits(text string) string {
	before, after, _ := strings.Cut(strings.TrimLeft(text, "+-"), ".")
	before, after = strings.TrimLeft(before, "0"), strings.TrimRight(after, "0")
	f := &s.Facets
	switch {
	case f.TotalDigits != nil && len(before)+len(after) > *f.TotalDigits:
		return fmt.Sprintf("%s has more than %d digits", text, *f.TotalDigits)
	case f.FractionDigits != nil && len(after) > *f.FractionDigits:
		return fmt.Sprintf("%s has more than %d digits behind the point", text, *f.FractionDigits)
	}
	return ""
}

// length is what facets of length limit: items, bytes, or characters.
func (s *Simple) length(text string) int {
	switch {
	case s.Variety == List:
		return len(strings.Fields(text))
	case s.Builtin == "hexBinary":
		return len(text) / 2
	case s.Builtin == "base64Binary":
		digits := strings.ReplaceAll(text, " ", "")
		return len(digits)/4*3 - strings.Count(digits, "=")
	}
	return utf8.RuneCountInString(text)
}

// enumerates reports whether a text is one of the values of an enumeration.
func (s *Simple) enumerates(text string) bool {
	if s.values == nil {
		s.values = map[string]bool{}
		for _, v := range s.Facets.Enumeration {
			s.values[s.normalize(v)] = true
		}
	}
	return s.values[text]
}

// compiled are the patterns of each step. One that this machine cannot express is nil.
func (s *Simple) compiled() [][]*regexp.Regexp {
	if s.patterns == nil {
		for _, step := range s.Facets.Patterns {
			var alternatives []*regexp.Regexp
			for _, p := range step {
				re, err := regexp.Compile(`^(?:` + translate(p) + `)$`)
				if err != nil {
					re = nil
				}
				alternatives = append(alternatives, re)
			}
			s.patterns = append(s.patterns, alternatives)
		}
	}
	return s.patterns
}

// matchesOne reports whether a text matches one of the patterns of a step, as it is taken to match
// one that cannot be expressed.
func matchesOne(patterns []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(patterns, func(re *regexp.Regexp) bool { return re == nil || re.MatchString(text) })
}

// translate writes a pattern of XML Schema (part 2, appendix F) as one of Go.
func translate(pattern string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(escape(pattern[i], inClass))
		case c == '[' && inClass: // subtraction, which Go does not have: no pattern
			return `(`
		case c == '[':
			inClass = true
			b.WriteByte(c)
		case c == ']':
			inClass = false
			b.WriteByte(c)
		case (c == '^' || c == '$') && !inClass:
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func escape(c byte, inClass bool) string {
	set := ""
	switch c {
	case 'i':
		set = `\p{L}_:`
	case 'c':
		set = `\p{L}\p{N}\p{M}._:·\-`
	case 'd':
		set = `\p{Nd}`
	default:
		return `\` + string(c)
	}
	if inClass {
		return set
	}
	return `[` + set + `]`
}
