package xsd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// facetsOf are the facets that a type can have beside pattern and enumeration, by the primitive
// type that it is derived from (XML Schema part 2, appendix C.1).
var (
	lengthFacets  = []string{"length", "minLength", "maxLength", "whiteSpace"}
	orderFacets   = []string{"minInclusive", "maxInclusive", "minExclusive", "maxExclusive", "whiteSpace"}
	decimalFacets = append(slices.Clone(orderFacets), "totalDigits", "fractionDigits")

	facetsOf = map[string][]string{
		"string": lengthFacets, "hexBinary": lengthFacets, "base64Binary": lengthFacets, "anyURI": lengthFacets,
		"QName": lengthFacets, "NOTATION": lengthFacets, "boolean": {"whiteSpace"}, "decimal": decimalFacets,
		"float": orderFacets, "double": orderFacets, "duration": orderFacets, "dateTime": orderFacets,
		"time": orderFacets, "date": orderFacets, "gYearMonth": orderFacets, "gYear": orderFacets,
		"gMonthDay": orderFacets, "gDay": orderFacets, "gMonth": orderFacets,
	}
)

// has reports whether a type can have a facet.
func (s *Simple) has(facet string) bool {
	switch {
	case facet == "pattern" || facet == "enumeration":
		return facet == "pattern" || s.Variety != Atomic || s.Builtin != "boolean"
	case s.Variety == List:
		return slices.Contains(lengthFacets, facet)
	case s.Variety == Union:
		return false
	}
	return slices.Contains(facetsOf[primitive(s.Builtin)], facet)
}

// narrower says why a restriction of a type cannot have a facet: it must allow less than the type
// (XML Schema part 2, section 4.3); "" if it can.
func (s *Simple) narrower(facet, value string) string {
	isFacet := facet == "pattern" || facet == "enumeration" || slices.Contains(lengthFacets, facet) ||
		slices.Contains(decimalFacets, facet)
	if !isFacet || s.Variety == Atomic && s.Builtin == "anySimpleType" { // what is missing is that, too
		return ""
	}
	f := &s.Facets
	switch {
	case !s.has(facet):
		return fmt.Sprintf("%s has no facet %s", s.describe(), facet)
	case facet == "enumeration":
		if why := s.Check(value); why != "" {
			return "a value that its base does not allow: " + why
		}
		return ""
	case facet == "whiteSpace":
		if ways := []string{"preserve", "replace", "collapse"}; slices.Index(ways, value) <
			slices.Index(ways, s.whiteSpace()) {
			return fmt.Sprintf("whiteSpace %s, where the base has %s", value, s.whiteSpace())
		}
		return ""
	case slices.Contains(orderFacets, facet):
		return s.narrowerBound(facet, value)
	}
	v, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil {
		return "" // reported by who reads it
	}
	exceeds := func(limit *int) bool { return limit != nil && v > *limit }
	below := func(limit *int) bool { return limit != nil && v < *limit }
	wrong := false
	switch facet {
	case "length":
		wrong = exceeds(f.Length) || below(f.Length) || exceeds(f.MaxLength) || below(f.MinLength)
	case "minLength":
		wrong = below(f.MinLength) || exceeds(f.MaxLength) || exceeds(f.Length)
	case "maxLength":
		wrong = exceeds(f.MaxLength) || below(f.MinLength) || below(f.Length)
	case "totalDigits":
		wrong = exceeds(f.TotalDigits)
	case "fractionDigits":
		wrong = exceeds(f.FractionDigits) || v > 0 && isBuiltin(s.Builtin, "integer")
	}
	if wrong || s.isFixed(facet, func(was string) bool { return was == strconv.Itoa(v) }) {
		return fmt.Sprintf("%s %d, which is not less than its base allows", facet, v)
	}
	return ""
}

// narrowerBound says why a restriction cannot have a least or greatest value.
func (s *Simple) narrowerBound(facet, value string) string {
	f := &s.Facets
	value = s.normalize(value)
	if why := s.checkForm(value); why != "" {
		return "a limit that its base does not have: " + why
	}
	// than reports whether the value is on this side of a limit; or on it, where that is no matter.
	than := func(sign int, limit string, on bool) bool {
		c, known := s.order(value, limit)
		return limit != "" && known && (c == sign || on && c == 0)
	}
	wrong := false
	switch facet {
	case "minInclusive":
		wrong = than(-1, f.MinInclusive, false) || than(1, f.MaxInclusive, false) ||
			than(-1, f.MinExclusive, true) || than(1, f.MaxExclusive, true)
	case "maxInclusive":
		wrong = than(1, f.MaxInclusive, false) || than(-1, f.MinInclusive, false) ||
			than(-1, f.MinExclusive, true) || than(1, f.MaxExclusive, true)
	case "minExclusive":
		wrong = than(-1, f.MinExclusive, false) || than(1, f.MaxInclusive, false) ||
			than(-1, f.MinInclusive, false) || than(1, f.MaxExclusive, true)
	case "maxExclusive":
		wrong = than(1, f.MaxExclusive, false) || than(1, f.MaxInclusive, false) ||
			than(-1, f.MinInclusive, false) || than(-1, f.MinExclusive, true)
	}
	same := func(was string) bool {
		c, known := s.order(value, was)
		return known && c == 0
	}
	if wrong || s.isFixed(facet, same) {
		return fmt.Sprintf("%s %s, which is not less than its base allows", facet, value)
	}
	return ""
}

// isFixed reports whether a facet is fixed to another value.
func (s *Simple) isFixed(facet string, same func(was string) bool) bool {
	if !slices.Contains(s.fixed, facet) {
		return false
	}
	f := &s.Facets
	was := map[string]string{
		"minInclusive": f.MinInclusive, "maxInclusive": f.MaxInclusive, "minExclusive": f.MinExclusive,
		"maxExclusive": f.MaxExclusive,
	}[facet]
	number := map[string]*int{
		"length": f.Length, "minLength": f.MinLength, "maxLength": f.MaxLength, "totalDigits": f.TotalDigits,
		"fractionDigits": f.FractionDigits,
	}[facet]
	if number != nil {
		was = strconv.Itoa(*number)
	}
	return !same(was)
}

// contradiction says which of the facets leave no value; "" if none do.
func (s *Simple) contradiction() string {
	f := &s.Facets
	exceeds := func(a, b *int) bool { return a != nil && b != nil && *a > *b }
	// above reports whether the least value is above the greatest, or on it.
	above := func(least, most string, on bool) bool {
		c, known := s.order(least, most)
		return least != "" && most != "" && known && (c > 0 || on && c == 0)
	}
	switch {
	case exceeds(f.MinLength, f.MaxLength), exceeds(f.MinLength, f.Length), exceeds(f.Length, f.MaxLength):
		return "the least length is above the greatest"
	case exceeds(f.FractionDigits, f.TotalDigits):
		return "fractionDigits is above totalDigits"
	case above(f.MinInclusive, f.MaxInclusive, false), above(f.MinExclusive, f.MaxExclusive, false),
		above(f.MinInclusive, f.MaxExclusive, true), above(f.MinExclusive, f.MaxInclusive, true):
		return "the least value is above the greatest"
	}
	return ""
}
