package main

import (
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// jsonField is a field of a struct in JSON.
type jsonField struct {
	key      string
	comment  string // what it is
	shares   bool   // the comment is that of the field above
	optional bool   // it may be left out
	typ      reflect.Type
}

// fieldsOf lists the fields that a struct has in JSON, those of embedded structs included.
func fieldsOf(t *testing.T, typ reflect.Type) (list []jsonField) {
	t.Helper()
	about := commentsOf(t, typ)
	comment := ""
	for i := range typ.NumField() {
		field := typ.Field(i)
		key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && key == "" {
			list = append(list, fieldsOf(t, field.Type)...)
			continue
		}
		if key == "" || key == "-" {
			continue
		}
		own := about[field.Name]
		if own != "" {
			comment = own
		}
		require.NotEmpty(t, comment, "%s.%s: a comment says what it is", typ, key)
		list = append(list, jsonField{key, comment, own == "", strings.HasPrefix(options, "omit"), field.Type})
	}
	return list
}

// commented are the comments of struct types by package, type and field.
var commented = map[string]map[string]map[string]string{}

// commentsOf returns the comments of a struct's fields, by their names in Go.
func commentsOf(t *testing.T, typ reflect.Type) map[string]string {
	t.Helper()
	folder := strings.TrimPrefix(strings.TrimPrefix(typ.PkgPath(), "github.com/hhfr/hhfr"), "/")
	types := commented[folder]
	if types == nil {
		types = map[string]map[string]string{}
		commented[folder] = types
		dir := shared.Testdata(t, "..", filepath.FromSlash(folder))
		for _, path := range shared.Files(t, dir, func(p string) bool {
			return filepath.Dir(p) == dir && strings.HasSuffix(p, ".go")
		}) {
			file, err := parser.ParseFile(token.NewFileSet(), path, shared.Read(t, path), parser.ParseComments)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.TypeSpec); ok {
					if of, ok := s.Type.(*ast.StructType); ok {
						types[s.Name.Name] = fieldComments(of)
					}
				}
				return true
			})
		}
	}
	require.Contains(t, types, typ.Name(), folder)
	return types[typ.Name()]
}

func fieldComments(of *ast.StructType) map[string]string {
	comments := map[string]string{}
	for _, field := range of.Fields.List {
		for _, name := range field.Names {
			comments[name.Name] = commentOf(field)
		}
	}
	return comments
}

// beginsWithName matches the beginning of a Go comment that names the field, which has another name
// in JSON.
var beginsWithName = regexp.MustCompile(`^[A-Z]\w*(, [A-Z]\w*)*( and [A-Z]\w*)?( is | are |: )`)

// commentOf is the text of a field's comment, without its final period.
func commentOf(field *ast.Field) string {
	text := field.Comment.Text()
	if text == "" {
		text = field.Doc.Text()
	}
	text = strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
	return beginsWithName.ReplaceAllString(text, "")
}

// elementOf returns the type that a field's type is made of, and how its fields are reached.
func elementOf(typ reflect.Type) (element reflect.Type, many string) {
	before, known := map[reflect.Kind]string{
		reflect.Pointer: "", reflect.Slice: "[]", reflect.Array: "[]", reflect.Map: "{}",
	}[typ.Kind()]
	if !known {
		return typ, ""
	}
	element, many = elementOf(typ.Elem())
	return element, before + many
}

// isText reports whether a type is a string in JSON that says itself which.
func isText(typ reflect.Type) bool {
	return typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()) && typ != reflect.TypeFor[json.RawMessage]()
}
