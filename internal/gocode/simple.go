package gocode

import (
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// kinds are the types of Go that have all values of a built-in type, and no others.
var kinds = map[string]string{
	"boolean": "bool", "float": "float32", "double": "float64", "base64Binary": "[]byte",
	"byte": "int8", "short": "int16", "int": "int32", "long": "int64",
	"unsignedByte": "uint8", "unsignedShort": "uint16", "unsignedInt": "uint32", "unsignedLong": "uint64",
}

// kindOf is the type of Go for a simple type, and what to say of it; "": the type of Go says all.
func kindOf(s *xsd.Simple) (kind, says string) {
	switch s.Variety {
	case xsd.List:
		_, item := kindOf(s.Item)
		return "string", "a list of " + orString(item, s.Item) + ", with blanks between them"
	case xsd.Union:
		return "string", "a union of types"
	case xsd.Atomic:
	}
	kind = kinds[s.Builtin]
	switch {
	case kind == "" && s.Builtin == "string":
		return "string", ""
	case kind == "":
		return "string", "xs:" + s.Builtin
	case len(s.Facets.Patterns) > 0: // they may ask for what a number does not keep, such as leading zeros
		return "string", "xs:" + s.Builtin + " with a pattern"
	}
	return kind, ""
}

func orString(says string, s *xsd.Simple) string {
	if says == "" {
		return "xs:" + s.Builtin
	}
	return says
}

// hasNames reports whether values are names with prefixes.
func hasNames(s *xsd.Simple) bool {
	switch s.Variety {
	case xsd.List:
		return hasNames(s.Item)
	case xsd.Union:
		for _, m := range s.Members {
			if hasNames(m) {
				return true
			}
		}
		return false
	case xsd.Atomic:
	}
	return s.Builtin == "QName" || s.Builtin == "NOTATION"
}

// enumType is a string type with a constant for each of its values.
type enumType struct {
	name   string
	wanted []string // names, preferred first
	place  xsd.Position
	xml    xsd.QName // zero: it has no name in the description
	values []string
	// constants are the names of the values.
	constants []string
}

// enum is the type of a simple type that has a few values; nil: it has any.
func (b *builder) enum(s *xsd.Simple, name xsd.QName, at xsd.Position, wanted ...string) *enumType {
	kind, _ := kindOf(s)
	if len(s.Facets.Enumeration) == 0 || kind != "string" || s.Variety != xsd.Atomic || hasNames(s) {
		return nil
	}
	if e := b.enums[s]; e != nil {
		return e
	}
	if name.Space == xmlns.XSD {
		name = xsd.QName{}
	}
	e := &enumType{xml: name, place: at, wanted: wanted}
	if name.Local != "" {
		e.wanted = []string{exported(name.Local), exported(name.Local) + "Type"}
		e.wanted = append(e.wanted, exported(name.Local)+"Values")
	}
	met := map[string]bool{}
	for _, v := range s.Facets.Enumeration {
		if !met[v] {
			met[v] = true
			e.values = append(e.values, v)
		}
	}
	b.enums[s] = e
	return e
}

// words name a value that has none of the characters of a name.
var words = strings.NewReplacer("+", " Plus ", "-", " Minus ", "*", " Star ", "/", " Slash ", "<", " Less ",
	">", " Greater ", "=", " Equal ", "!", " Not ", "%", " Percent ", "&", " And ", "#", " Number ", "$", " Dollar ")

// constant is the name of a value.
func (e *enumType) constant(value string) string {
	name := strings.TrimPrefix(exported("X"+value), "X")
	if strings.TrimSpace(value) == "" {
		return e.name + "Empty"
	}
	if name == "" {
		name = exported(words.Replace(value))
	}
	if first := rune(value[0]); first == '-' && len(value) > 1 && value[1] >= '0' && value[1] <= '9' {
		name = "Minus" + name
	}
	if name != "" && name[0] >= 'a' && name[0] <= 'z' {
		name = strings.ToUpper(name[:1]) + name[1:]
	}
	return e.name + name
}
