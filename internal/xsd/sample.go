package xsd

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
)

// samplesTried is how many texts are made of a type, until one is a value of it.
const samplesTried = 200

// Sample makes a value of the type, another one by the state of r; false: none was found, as of
// patterns and limits that hardly any text keeps.
func (s *Simple) Sample(r *rand.Rand) (text string, found bool) {
	for range samplesTried {
		if text = s.attempt(r); s.Check(text) == "" {
			return text, true
		}
	}
	for _, limit := range []string{s.Facets.MinInclusive, s.Facets.MaxInclusive} {
		if limit != "" && s.Check(limit) == "" {
			return limit, true
		}
	}
	return "", false
}

// attempt makes a text that is likely to be a value.
func (s *Simple) attempt(r *rand.Rand) string {
	f := &s.Facets
	if n := len(f.Enumeration); n > 0 {
		return f.Enumeration[r.IntN(n)]
	}
	if n := len(f.Patterns); n > 0 && r.IntN(4) > 0 { // what a pattern makes may be no value of the type
		step := f.Patterns[r.IntN(n)]
		if text, ok := matching(step[r.IntN(len(step))], r); ok {
			return text
		}
	}
	switch s.Variety {
	case List:
		var items []string
		for range s.lengthOf(r, 1) {
			item, _ := s.Item.Sample(r)
			items = append(items, item)
		}
		return strings.Join(items, " ")
	case Union:
		text, _ := s.Members[r.IntN(len(s.Members))].Sample(r)
		return text
	case Atomic:
	}
	return s.atom(r)
}

// lengthOf is a length that the facets allow, about as long as usual where they do not say.
func (s *Simple) lengthOf(r *rand.Rand, usual int) int {
	f := &s.Facets
	least, most := min(usual, 1), usual+r.IntN(4)
	if f.MinLength != nil {
		least = *f.MinLength
		most = max(most, least)
	}
	if f.MaxLength != nil {
		most = min(most, *f.MaxLength)
	}
	if f.Length != nil {
		return *f.Length
	}
	return least + r.IntN(max(most-least, 0)+1)
}

const letters = "abcdefghijklmnopqrstuvwxyz"

// atom makes a text of a built-in type.
func (s *Simple) atom(r *rand.Rand) string {
	day := fmt.Sprintf("%04d-%02d-%02d", 1990+r.IntN(60), 1+r.IntN(12), 1+r.IntN(28))
	clock := fmt.Sprintf("%02d:%02d:%02d", r.IntN(24), r.IntN(60), r.IntN(60))
	switch kind := primitive(s.Builtin); kind {
	case "boolean":
		return []string{"true", "false"}[r.IntN(2)]
	case "decimal":
		return s.number(r)
	case "float", "double":
		return s.number(r) + []string{"", ".5", "E1"}[r.IntN(3)]
	case "dateTime":
		return day + "T" + clock + "Z"
	case "date":
		return day
	case "time":
		return clock
	case "duration":
		return fmt.Sprintf("PT%dS", r.IntN(100))
	case "gYearMonth":
		return day[:7]
	case "gYear":
		return day[:4]
	case "gMonthDay":
		return "-" + day[4:]
	case "gDay":
		return "--" + day[7:]
	case "gMonth":
		return "-" + day[4:7]
	case "hexBinary":
		return strings.Repeat("0A", s.lengthOf(r, 4))
	case "base64Binary":
		data := make([]byte, s.lengthOf(r, 8))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		return base64.StdEncoding.EncodeToString(data)
	case "anyURI":
		return s.padded(r, "urn:example:")
	case "QName", "NOTATION":
		return "name"
	}
	switch s.Builtin {
	case "language":
		return []string{"en", "de", "en-US"}[r.IntN(3)]
	}
	return s.padded(r, "")
}

// padded is a text that begins so, of letters, and as long as the facets say.
func (s *Simple) padded(r *rand.Rand, start string) string {
	n := s.lengthOf(r, len(start)+6)
	b := []byte(start)
	for len(b) < n {
		b = append(b, letters[r.IntN(len(letters))])
	}
	return string(b[:n])
}

// number makes a decimal within the limits, of few digits where they allow it.
func (s *Simple) number(r *rand.Rand) string {
	f := &s.Facets
	limits := ranges[s.Builtin]
	least := bound(big.NewInt(0), 1, limits[0], f.MinInclusive)
	most := bound(big.NewInt(1000), -1, limits[1], f.MaxInclusive)
	if f.MinExclusive != "" {
		least = bound(least, 1, f.MinExclusive)
		least.Add(least, big.NewInt(1))
	}
	if f.MaxExclusive != "" {
		most = bound(most, -1, f.MaxExclusive)
		most.Sub(most, big.NewInt(1))
	}
	if f.TotalDigits != nil && *f.TotalDigits < 4 {
		most = bound(most, -1, strings.Repeat("9", max(*f.TotalDigits, 1)))
	}
	if least.Cmp(most) > 0 { // the limits are on one side of the usual numbers
		if lowest := f.MinInclusive + f.MinExclusive + limits[0]; lowest != "" && s.least().Sign() > 0 {
			most.Add(least, big.NewInt(100))
		} else {
			least.Sub(most, big.NewInt(100))
		}
	}
	span := new(big.Int).Sub(most, least)
	if !span.IsInt64() || span.Int64() < 0 {
		return least.String()
	}
	return new(big.Int).Add(least, big.NewInt(r.Int64N(min(span.Int64(), 1<<40)+1))).String()
}

// least is the least value, 0 if the facets do not say.
func (s *Simple) least() *big.Int {
	return bound(big.NewInt(0), 1, s.Facets.MinInclusive, s.Facets.MinExclusive)
}

// bound is a limit as it is usual, or as the texts make it: the greatest by sign 1, the least by
// -1.
func bound(usual *big.Int, sign int, texts ...string) *big.Int {
	best := new(big.Int).Set(usual)
	for _, text := range texts {
		text = strings.TrimPrefix(strings.TrimSpace(text), "+")
		if v, ok := new(big.Rat).SetString(text); ok && len(text) <= maxDigits {
			n := new(big.Int).Quo(v.Num(), v.Denom())
			if n.Cmp(best)*sign > 0 {
				best = n
			}
		}
	}
	return best
}

// matching makes a text that matches a pattern; false: it cannot be expressed.
func matching(pattern string, r *rand.Rand) (string, bool) {
	re, err := syntax.Parse(translate(pattern), syntax.Perl)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	match(&b, re, r)
	return b.String(), true
}

// maxMatched bounds the texts that repetitions make, in bytes.
const maxMatched = 1000

func match(b *strings.Builder, re *syntax.Regexp, r *rand.Rand) {
	repeat := func(least, most int) {
		if most < 0 {
			most = least + 3
		}
		for range least + r.IntN(min(most-least, 8)+1) {
			if b.Len() < maxMatched {
				match(b, re.Sub[0], r)
			}
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(oneOf(re.Rune, r))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte(letters[r.IntN(len(letters))])
	case syntax.OpStar:
		repeat(0, -1)
	case syntax.OpPlus:
		repeat(1, -1)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		repeat(re.Min, re.Max)
	case syntax.OpAlternate:
		match(b, re.Sub[r.IntN(len(re.Sub))], r)
	default:
		for _, sub := range re.Sub {
			match(b, sub, r)
		}
	}
}

// oneOf is a character of a class, given by the first and last of its ranges: a printable one of
// ASCII, if there are some.
func oneOf(class []rune, r *rand.Rand) rune {
	var printable []rune
	for pair := range slices.Chunk(class, 2) {
		for c := max(pair[0], '!'); c <= min(pair[1], '~'); c++ {
			printable = append(printable, c)
		}
	}
	switch {
	case len(printable) > 0:
		return printable[r.IntN(len(printable))]
	case len(class) == 0:
		return 'x' // nothing matches
	}
	return class[2*r.IntN(len(class)/2)]
}
