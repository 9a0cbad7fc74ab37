package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/xmlns"
)

// The default envelope: it surrounds a message that was given as values, not as XML
// (docs/negotiation.md, section 8).
const (
	envelopeStart = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<soap:Envelope xmlns:soap="` + xmlns.SOAP11 +
		`"><soap:Body>`
	envelopeEnd = `</soap:Body></soap:Envelope>`
	itemName    = "item"
)

// Message writes values as a message in the default envelope: SOAP 1.1, without header blocks and
// white space between tags, elements in the namespaces that the schema states, items of arrays
// named item unless the schema names them. values has a value for each element
// of the schema's root, by name; the name of an attribute has an @ in front. Values are strings
// (also of numbers), bools, numbers of Go, [json.Number]; slices for arrays; and map[string]any for
// elements with elements inside. What package json makes of a JSON object is accepted. None may be
// missing, and there may be no others. Errors: BadValue, with Path.
func (s *Schema) Message(values map[string]any) ([]byte, error) {
	w := valueWriter{b: []byte(envelopeStart)}
	if s.root.Array || s.root.Leaf() {
		if len(values) != 1 {
			return nil, badValue(s.root.Name, "%d values, one is described", len(values))
		}
		if err := w.element(s.root, values[s.root.Name], s.root.Name, ""); err != nil {
			return nil, err
		}
	} else if err := w.element(s.root, values, s.root.Name, ""); err != nil {
		return nil, err
	}
	return append(w.b, envelopeEnd...), nil
}

func badValue(path, format string, args ...any) error {
	return &Error{Code: BadValue, At: -1, Path: path, What: fmt.Sprintf(format, args...)}
}

type valueWriter struct{ b []byte }

// element writes an element inside one of a namespace.
func (w *valueWriter) element(e *Element, v any, path, inside string) error {
	if len(w.b) > maxMessage {
		return &Error{
			Code: TooLarge,
			At:   -1,
			Path: path,
			What: fmt.Sprintf("a message of more than %d bytes", maxMessage),
		}
	}
	w.b = append(w.b, "<"+e.Name...)
	if e.Namespace != inside {
		w.b = append(w.b, ` xmlns="`+escapes.Replace(e.Namespace)+`"`...)
	}
	var err error
	switch {
	case e.Array:
		w.b = append(w.b, '>')
		err = w.items(e, v, path)
	case e.Leaf():
		w.b = append(w.b, '>')
		err = w.value(e.Type, v, path)
	default:
		err = w.complex(e, v, path)
	}
	w.b = append(w.b, "</"+e.Name+">"...)
	return err
}

func (w *valueWriter) complex(e *Element, v any, path string) error {
	values, ok := v.(map[string]any)
	if !ok {
		return badValue(path, "%T where elements are described", v)
	}
	if len(values) > len(e.Attributes)+len(e.Children) {
		for name := range values {
			if !e.has(name) {
				return badValue(path, "%.60q is not described", name)
			}
		}
	}
	for _, a := range e.Attributes {
		v, ok := values["@"+a.Name]
		if !ok {
			return badValue(path, "attribute %s is missing", a.Name)
		}
		w.b = append(w.b, " "+a.Name+`="`...)
		if err := w.value(a.Type, v, path+"/@"+a.Name); err != nil {
			return err
		}
		w.b = append(w.b, '"')
	}
	w.b = append(w.b, '>')
	for _, c := range e.Children {
		v, ok := values[c.Name]
		if !ok {
			return badValue(path, "%s is missing", c.Name)
		}
		if err := w.element(c, v, path+"/"+c.Name, e.Namespace); err != nil {
			return err
		}
	}
	return nil
}

func (e *Element) has(name string) bool {
	for _, c := range e.Children {
		if c.Name == name {
			return true
		}
	}
	for _, a := range e.Attributes {
		if "@"+a.Name == name {
			return true
		}
	}
	return false
}

func (w *valueWriter) items(e *Element, v any, path string) error {
	list := reflect.ValueOf(v)
	if !list.IsValid() || list.Kind() != reflect.Slice && list.Kind() != reflect.Array {
		return badValue(path, "%T where an array is described", v)
	}
	if e.Items > 0 && list.Len() != e.Items {
		return badValue(path, "%d items, %d are described", list.Len(), e.Items)
	}
	name := cmp.Or(e.Item, itemName)
	for i := range list.Len() {
		w.b = append(w.b, "<"+name+">"...)
		if err := w.value(e.Type, list.Index(i).Interface(), path+"["+strconv.Itoa(i+1)+"]"); err != nil {
			return err
		}
		w.b = append(w.b, "</"+name+">"...)
	}
	return nil
}

func (w *valueWriter) value(t shape.Type, v any, path string) error {
	text, ok := textOf(t, v)
	if !ok || !valid(t, text) {
		return badValue(path, "%.60q (%T) is no %s", fmt.Sprint(v), v, typeName(t))
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unwritable) {
		return badValue(path, "%.60q cannot stand in XML", text)
	}
	w.b = append(w.b, escapes.Replace(text)...)
	return nil
}

// unwritable reports whether XML 1.0 has no way to write a character.
func unwritable(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

// escapes preserves what a parser would change: white space in attributes, and carriage returns.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\r", "&#13;", "\n", "&#10;",
	"\t", "&#9;")

// textOf returns a value as text of a type, floats as short as their precision allows and without
// an exponent.
func textOf(t shape.Type, v any) (text string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), t == shape.TypeBoolean
	}
	n := reflect.ValueOf(v)
	switch {
	case t == shape.TypeBoolean:
		return "", false
	case n.CanInt():
		return strconv.FormatInt(n.Int(), 10), true
	case n.CanUint():
		return strconv.FormatUint(n.Uint(), 10), true
	case !n.IsValid() || !n.CanFloat():
		return "", false
	}
	f, bits := n.Float(), 64
	if n.Kind() == reflect.Float32 || t == shape.TypeFloat {
		bits = 32
	}
	switch {
	case math.IsNaN(f):
		return "NaN", true
	case math.IsInf(f, 0):
		return map[bool]string{true: "INF", false: "-INF"}[f > 0], true
	}
	return strconv.FormatFloat(f, 'f', -1, bits), true
}
