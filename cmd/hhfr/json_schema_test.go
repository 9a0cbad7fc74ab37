package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// schemaMaker makes a JSON Schema of Go types, and the comments of their fields.
type schemaMaker struct {
	t       *testing.T
	defs    map[string]any
	checked map[string]bool // keys of valuesOf that were used
}

// ownNames are those of types of commands whose names here are not that in Go with a small letter.
var ownNames = map[string]string{"DecodeReport": "report", "RunSummary": "summary", "HHFRSchemas": "hhfrSchemas"}

// manualSchema is the JSON Schema of what is printed as JSON.
func manualSchema(t *testing.T) string {
	t.Helper()
	m := schemaMaker{t, map[string]any{}, map[string]bool{}}
	forms := map[string][]any{}
	var all []any
	for _, p := range printed {
		if p.typ == nil {
			continue
		}
		if forms[p.name] == nil {
			all = append(all, map[string]any{"$ref": "#/$defs/" + p.name})
		}
		forms[p.name] = append(forms[p.name], m.of(p.typ))
	}
	for name, kinds := range forms {
		m.defs[name] = map[string]any{"anyOf": kinds}
	}
	for key := range valuesOf {
		assert.True(t, m.checked[key], "valuesOf: no field %s", key)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	require.NoError(t, e.Encode(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "What hhfr prints as JSON, of version 1",
		"$comment": "Made by go test ./cmd/hhfr -run TestManual -update. #/$defs/decode is what hhfr decode -o json " +
			"prints, #/$defs/decode-jsonl a line of hhfr decode -o jsonl, and so on.",
		"anyOf": all,
		"$defs": m.defs,
	}))
	return b.String()
}

// typeName is the name of a type's definition.
func typeName(typ reflect.Type) string {
	name := typ.String()
	if !strings.Contains(typ.PkgPath(), "/cmd/hhfr") {
		return name
	}
	if known, ok := ownNames[typ.Name()]; ok {
		return known
	}
	return strings.ToLower(typ.Name()[:1]) + typ.Name()[1:]
}

// of is the schema of a type.
func (m *schemaMaker) of(typ reflect.Type) map[string]any {
	m.t.Helper()
	kind := func(name string) map[string]any { return map[string]any{"type": name} }
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case typ == reflect.TypeFor[json.RawMessage]():
		return kind("object")
	case typ == reflect.TypeFor[[]byte]():
		return map[string]any{"type": "string", "contentEncoding": "base64"}
	case isValues(typ):
		return map[string]any{}
	case isText(typ):
		return kind("string")
	}
	switch k := typ.Kind(); {
	case k == reflect.Pointer:
		return m.of(typ.Elem())
	case k == reflect.Slice:
		return map[string]any{"type": "array", "items": m.of(typ.Elem())}
	case k == reflect.Array:
		return map[string]any{"type": "array", "items": m.of(typ.Elem()), "minItems": typ.Len(), "maxItems": typ.Len()}
	case k == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": m.of(typ.Elem())}
	case k == reflect.Struct:
		m.define(typ)
		return map[string]any{"$ref": "#/$defs/" + typeName(typ)}
	case k == reflect.Bool, k == reflect.String:
		return kind(map[reflect.Kind]string{reflect.Bool: "boolean", reflect.String: "string"}[k])
	case k == reflect.Float64:
		return kind("number")
	case typ.ConvertibleTo(reflect.TypeFor[uint64]()) && reflect.Zero(typ).CanUint():
		return map[string]any{"type": "integer", "minimum": 0}
	default:
		require.True(m.t, reflect.Zero(typ).CanInt(), "%s: no schema", typ)
		return kind("integer")
	}
}

// define defines a struct, once.
func (m *schemaMaker) define(typ reflect.Type) {
	name := typeName(typ)
	if m.defs[name] != nil {
		return
	}
	properties, required := map[string]any{}, []string{}
	def := map[string]any{"type": "object", "properties": properties}
	m.defs[name] = def
	for _, f := range fieldsOf(m.t, typ) {
		one := m.of(f.typ)
		values := valuesOf[name+"."+f.key]
		if values != nil {
			m.checked[name+"."+f.key] = true
			one["enum"] = values
		}
		for _, value := range values {
			assert.Contains(m.t, f.comment, value, "%s.%s", name, f.key)
		}
		if strings.Contains(f.comment, "null: ") {
			one = map[string]any{"anyOf": []any{one, map[string]any{"type": "null"}}}
		}
		if f.key == "version" && f.comment == "1" {
			one["const"] = 1
		}
		one["description"] = f.comment
		properties[f.key] = one
		if !f.optional {
			required = append(required, f.key)
		}
	}
	if len(required) > 0 {
		def["required"] = required
	}
	if typ == reflect.TypeFor[logLine]() {
		def["additionalProperties"] = map[string]any{"type": []string{"string", "number", "boolean"}}
	}
}

// printedChecker holds what commands printed against the schema, which it takes to list all fields.
type printedChecker struct {
	schema map[string]any // $defs
	of     map[string]*jsonschema.Schema
	seen   map[string]bool // definition, dot, field
}

func newPrintedChecker() (*printedChecker, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(jsonSchema))
	if err != nil {
		return nil, err
	}
	root, _ := doc.(map[string]any)
	defs, _ := root["$defs"].(map[string]any)
	c := &printedChecker{schema: defs, of: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for _, def := range c.schema {
		if def := def.(map[string]any); def["properties"] != nil && def["additionalProperties"] == nil {
			def["additionalProperties"] = false
		}
	}
	if err := compiler.AddResource("hhfr.json", doc); err != nil {
		return nil, err
	}
	for name := range c.schema {
		if c.of[name], err = compiler.Compile("hhfr.json#/$defs/" + name); err != nil {
			return nil, err
		}
	}
	if _, err = compiler.Compile("hhfr.json"); err != nil {
		return nil, err
	}
	return c, nil
}

// check holds a line against the definitions of some outputs, of which it fits one.
func (c *printedChecker) check(line []byte, names ...string) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return err
	}
	var errs []string
	for _, name := range names {
		if err := c.of[name].Validate(value); err != nil {
			errs = append(errs, err.Error())
			continue
		}
		c.mark(map[string]any{"$ref": "#/$defs/" + name}, value)
		return nil
	}
	return fmt.Errorf("%s\n%.2000s", strings.Join(errs, "\n"), line)
}

// mark notes the fields that a value has.
func (c *printedChecker) mark(schema map[string]any, value any) {
	name := ""
	if ref, ok := schema["$ref"].(string); ok {
		name = strings.TrimPrefix(ref, "#/$defs/")
		schema = c.schema[name].(map[string]any)
	}
	for _, one := range asList(schema["anyOf"]) {
		one := one.(map[string]any)
		if ref, ok := one["$ref"].(string); !ok || c.of[strings.TrimPrefix(ref, "#/$defs/")].Validate(value) == nil {
			c.mark(one, value)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	more, _ := schema["additionalProperties"].(map[string]any)
	switch value := value.(type) {
	case []any:
		if items, ok := schema["items"].(map[string]any); ok {
			for _, one := range value {
				c.mark(items, one)
			}
		}
	case map[string]any:
		for key, one := range value {
			if p, ok := properties[key].(map[string]any); ok {
				c.seen[name+"."+key] = true
				c.mark(p, one)
			} else if more != nil {
				c.mark(more, one)
			}
		}
	}
}

func asList(value any) []any { list, _ := value.([]any); return list }

// missing lists the fields that nothing printed.
func (c *printedChecker) missing() (list []string) {
	for name, def := range c.schema {
		properties, _ := def.(map[string]any)["properties"].(map[string]any)
		for key := range properties {
			if !c.seen[name+"."+key] {
				list = append(list, name+"."+key)
			}
		}
	}
	slices.Sort(list)
	return list
}
