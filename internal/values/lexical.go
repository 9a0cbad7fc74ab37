package values

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/xsd"
)

// decimals are the built-in types whose values are decimal numbers.
var decimals = map[string]bool{
	"decimal": true, "integer": true, "nonPositiveInteger": true, "negativeInteger": true, "long": true, "int": true,
	"short": true, "byte": true, "nonNegativeInteger": true, "unsignedLong": true, "unsignedInt": true,
	"unsignedShort": true, "unsignedByte": true, "positiveInteger": true,
}

func isFloat(builtin string) bool { return builtin == "float" || builtin == "double" }

// takes reports whether a simple type has values that are of a kind in JSON; nil: any.
func takes(s *xsd.Simple, kind Kind) bool {
	switch {
	case s == nil:
		return true
	case s.Variety == xsd.Union:
		return slices.ContainsFunc(s.Members, func(m *xsd.Simple) bool { return takes(m, kind) })
	case s.Variety == xsd.List:
		return kind == Array || takes(s.Item, kind)
	}
	switch kind {
	case Number:
		return decimals[s.Builtin] || isFloat(s.Builtin) || s.Builtin == "anySimpleType"
	case Bool:
		return s.Builtin == "boolean" || s.Builtin == "anySimpleType"
	case String, Loose:
		return true
	case Null, Array, Object:
	}
	return false
}

// lexical is the text of a value of a simple type, of which nil is any; wrong: it has none.
func (w *messageWriter) lexical(s *xsd.Simple, v *JSON) (text, wrong string) {
	if v.Kind == Array && isList(s) {
		return w.list(s, v)
	}
	if v.Kind == Null || v.Kind == Array || v.Kind == Object || !takes(s, v.Kind) {
		return "", named[v.Kind] + ", where " + expectedOf(s) + " is expected"
	}
	if i := forbidden(v.Text); i >= 0 {
		return "", fmt.Sprintf("%q, which XML cannot have", v.Text[i:i+1])
	}
	text = v.Text
	switch {
	case v.Kind == Number && s != nil && hasDecimal(s) && s.Check(text) != "":
		return plainDecimal(text), ""
	case s != nil && hasQName(s) && s.Check(text) != "":
		if name, full := parseClark(text); full {
			return w.prefixed(name), wrongName(name)
		}
	}
	return text, ""
}

func (w *messageWriter) list(s *xsd.Simple, v *JSON) (text, wrong string) {
	var item *xsd.Simple
	if s.Variety == xsd.List {
		item = s.Item
	}
	var texts []string
	for i, one := range v.Items {
		text, wrong := w.lexical(item, one)
		switch {
		case wrong != "":
			return "", fmt.Sprintf("item %d: %s", i+1, wrong)
		case strings.TrimSpace(text) == "" || strings.ContainsAny(text, " \t\r\n"):
			return "", fmt.Sprintf("item %d of a list has white space in it, or is empty", i+1)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " "), ""
}

func hasDecimal(s *xsd.Simple) bool {
	return decimals[s.Builtin] || s.Variety == xsd.Union && slices.ContainsFunc(s.Members, hasDecimal)
}

func isQName(s *xsd.Simple) bool { return s.Builtin == "QName" || s.Builtin == "NOTATION" }

func hasQName(s *xsd.Simple) bool {
	return isQName(s) || s.Variety == xsd.Union && slices.ContainsFunc(s.Members, hasQName)
}

// maxExponent bounds the digits that an exponent stands for.
const maxExponent = 400

// plainDecimal writes a number without an exponent, which decimals do not have.
func plainDecimal(text string) string {
	_, exponent, has := strings.Cut(strings.ToLower(text), "e")
	n, err := strconv.Atoi(exponent)
	value, ok := new(big.Rat), false
	if has && err == nil && max(n, -n) <= maxExponent {
		value, ok = value.SetString(text)
	}
	switch {
	case !ok:
		return text
	case value.IsInt():
		return value.Num().String()
	}
	return strings.TrimRight(value.FloatString(len(text)+max(-n, 0)), "0")
}

// expectedOf says in a few words what values of a type are.
func expectedOf(s *xsd.Simple) string {
	switch {
	case s == nil:
		return "a single value"
	case s.Variety == xsd.List:
		return "an array, or a text of items with blanks between them,"
	case s.Variety == xsd.Union:
		return "one of several simple types"
	}
	article := "a "
	if strings.ContainsAny(s.Builtin[:1], "aeiouIA") {
		article = "an "
	}
	return article + s.Builtin
}

// scalar is the value of a text of a simple type. What is none of the type is a string.
func (r *messageReader) scalar(s *xsd.Simple, n *xsd.DocumentNode, text string) *JSON {
	if s == nil {
		return &JSON{Kind: String, Text: text}
	}
	switch s.Variety {
	case xsd.Union:
		for _, m := range s.Members {
			if m.Check(text) == "" {
				return r.scalar(m, n, text)
			}
		}
	case xsd.List:
		if s.Check(text) == "" {
			v := &JSON{Kind: Array}
			for item := range strings.FieldsSeq(text) {
				v.Items = append(v.Items, r.scalar(s.Item, n, item))
			}
			return v
		}
	case xsd.Atomic:
		if v := atomic(s, n, text); v != nil && s.Check(text) == "" {
			return v
		}
	}
	return &JSON{Kind: String, Text: text}
}

// atomic is the value of a text whose type is no kind of string; nil: it is a string.
func atomic(s *xsd.Simple, n *xsd.DocumentNode, text string) *JSON {
	trimmed := strings.TrimSpace(text)
	switch {
	case s.Builtin == "boolean":
		v := &JSON{Kind: Bool, Text: "false"}
		if trimmed == "1" || trimmed == "true" {
			v.Text = "true"
		}
		return keepsType(s, v)
	case decimals[s.Builtin], isFloat(s.Builtin) && !strings.HasSuffix(trimmed, "INF") && trimmed != "NaN":
		return keepsType(s, &JSON{Kind: Number, Text: jsonNumber(trimmed)})
	case isQName(s):
		if name, ok := n.QName(trimmed); ok {
			return &JSON{Kind: String, Text: clark(name)}
		}
	}
	return nil
}

// keepsType is a value whose text in JSON is one of its type too; nil: it is not, as with a pattern
// that wants leading zeros.
func keepsType(s *xsd.Simple, v *JSON) *JSON {
	if s.Check(v.Text) != "" {
		return nil
	}
	return v
}

// jsonNumber writes a decimal or float as JSON has numbers: without a plus and leading zeros, and
// with digits on both sides of a point.
func jsonNumber(text string) string {
	rest, negative := strings.CutPrefix(text, "-")
	rest = strings.TrimPrefix(rest, "+")
	mantissa, exponent := rest, ""
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponent = rest[:i], rest[i:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if negative {
		whole = "-" + whole
	}
	return whole + exponent
}
