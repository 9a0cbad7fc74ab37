package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// printed is the JSON of the commands: the object, and the type with its fields. The fields'
// comments say what they mean.
var printed = []struct{ command, about, folder, name string }{
	{"decode", "one object. `-o jsonl` prints its `messages` alone, one a line", "cmd/hhfr", "report"},
	{"decode", "with `-o jsonl` from a pipe, a line for each check of a stream, about messages that were\n" +
		"listed before as unverified", "cmd/hhfr", "checkReport"},
	{"decode", "with `-o jsonl`, behind all others, a line for each sequence of WS-ReliableMessaging", "cmd/hhfr",
		"sequenceLine"},
	{"estimate", "one object with `version` and in `report`", "internal/estimate", "Report"},
	{"reconstruct", "as `decode`", "", ""},
	{"stream", "a line for each reply, in sending order", "cmd/hhfr", "exchangeReport"},
	{"stream", "with `--listen` a line for each server-initiated message", "cmd/hhfr", "serverMessage"},
	{"stream", "the last line has these in `summary`", "cmd/hhfr", "summary"},
	{"stream", "a message of unknown fate has, in place of what its reply would say", "cmd/hhfr", "unknownReport"},
	{"negotiate", "one object", "cmd/hhfr", "negotiateReport"},
	{"serve", "one object with `version`, `addresses` (host and port, by what listens there:\n" +
		"`http`, `tcp`), `store` and `services`, in which each service has, by its name", "cmd/hhfr", "serviceLine"},
	{"demo", "one object with `version`, `session` (what was agreed), `same` (everything came back\n" +
		"as it was sent, and is the same in the captures), `link` (the profile), `dir` (the folder with the\n" +
		"files), and `rows` and `total`, which have", "internal/demo", "Row"},
	{"demo", "each of `ways`, the sessions over the link, has", "internal/demo", "SessionRun"},
	{"transcode", "with `--stats` a line for each message, and a last one with `version` and in `total`\n" +
		"the same fields. Times are in nanoseconds", "internal/transcode", "Figures"},
	{"schema", "`compile`: one object with `version`, `problems` that belong to no operation, and\n" +
		"`compiled`, in which each operation has", "cmd/hhfr", "compiled"},
	{"schema", "`diff`: one object with `version`, `affected` (streams are), and `changes`, each of\n" +
		"which has", "cmd/hhfr", "change"},
	{"context", "`list`: one object with `version` and `entries`; with `-o jsonl` a line for each entry. `get`\n" +
		"has `version`, these, and the value in `value_base64`", "cmd/hhfr", "contextEntry"},
	{"context", "`watch`: a line for each change", "cmd/hhfr", "contextChange"},
	{"context", "`import`: one object with `version` and, in numbers of entries", "pkg/ctxstore/transfer", "Imported"},
	{"context", "`put`: one object with `version`, `uri` and the new `revision`; `serve`: one object, once it\n" +
		"listens, with `version` and its `url`", "", ""},
	{"replay", "a line for each exchange", "cmd/hhfr", "replayLine"},
	{"replay", "`difference` has", "internal/replay", "Difference"},
	{"replay", "the last line has these in `summary`", "cmd/hhfr", "replaySummary"},
	{"bench", "`session`: one object with `version` and in `report`", "internal/bench", "Results"},
	{"proxy", "one object, once it listens: `version`, `addresses`, `store`, and the URL it forwards to as\n" +
		"`upstream`", "", ""},
	{"version", "one object", "cmd/hhfr", "versionInfo"},
}

const jsonHead = `# What commands print as JSON

Made by ` + "`go test ./cmd/hhfr -run TestManual -update`" + ` from the commands themselves
([cli.md](cli.md)).

An object has a ` + "`version`" + `, 1 for all here; where a command prints several lines, the last one has
it. Within a version fields are added, never changed or removed. Bytes are in base64, in fields
whose names end in ` + "`_base64`" + `.
Optional fields are left out where they do not apply.
`

// manualJSON documents what commands print with -o json.
func manualJSON(t *testing.T, root *cobra.Command) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(jsonHead)
	has := map[string]bool{}
	for _, p := range printed {
		if !has[p.command] {
			fmt.Fprintf(&b, "\n## hhfr %s\n", p.command)
		}
		has[p.command] = true
		fmt.Fprintf(&b, "\n%s%s", strings.ToUpper(p.about[:1]), p.about[1:])
		if p.name == "" {
			b.WriteString(".\n")
			continue
		}
		b.WriteString(":\n\n| field | |\n|---|---|\n")
		f := fields{t: t, types: typesOf(t, p.folder), seen: map[string]string{}, to: &b}
		f.of(p.name, "")
		f.flush()
	}
	for _, c := range root.Commands() {
		if o := c.Flags().Lookup("output"); o != nil && strings.Contains(o.Usage, "json") {
			assert.True(t, has[c.Name()], "%s -o json: say in `printed` of json_test.go what it prints",
				c.CommandPath())
		}
	}
	return b.String()
}

// typesOf reads the struct types of a package.
func typesOf(t *testing.T, folder string) map[string]*ast.StructType {
	t.Helper()
	types := map[string]*ast.StructType{}
	dir := shared.Testdata(t, "..", filepath.FromSlash(folder))
	for _, path := range shared.Files(t, dir, func(p string) bool {
		return filepath.Dir(p) == dir && strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_test.go")
	}) {
		file, err := parser.ParseFile(token.NewFileSet(), path, shared.Read(t, path), parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				if of, ok := s.Type.(*ast.StructType); ok {
					types[s.Name.Name] = of
				}
			}
			return true
		})
	}
	return types
}

// fields writes a table of fields. Fields below a shared comment share a row.
type fields struct {
	t     *testing.T
	types map[string]*ast.StructType
	seen  map[string]string // where a type's fields are listed already
	to    *strings.Builder

	names   []string
	comment string
}

func (f *fields) of(name, prefix string) {
	f.t.Helper()
	s := f.types[name]
	require.NotNil(f.t, s, "no type %s", name)
	for _, field := range s.Fields.List {
		if field.Tag == nil {
			continue
		}
		literal, err := strconv.Unquote(field.Tag.Value)
		require.NoError(f.t, err)
		key, options, _ := strings.Cut(reflect.StructTag(literal).Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		if comment := commentOf(field); comment != "" {
			f.flush()
			f.comment = comment
		}
		require.NotEmpty(f.t, f.comment, "%s.%s: a comment says what it is", name, key)
		inner, many := structOf(field.Type)
		if strings.Contains(options, "omitempty") && !strings.HasSuffix(f.comment, " (optional)") {
			f.comment += " (optional)"
		}
		f.names = append(f.names, "`"+prefix+key+"`")
		if f.types[inner] == nil {
			continue
		}
		if at := f.seen[inner]; at != "" {
			f.comment += ": as in `" + at + "`"
			continue
		}
		f.seen[inner] = prefix + key
		f.flush()
		f.of(inner, prefix+key+many+".")
	}
	f.flush()
}

func (f *fields) flush() {
	if len(f.names) > 0 {
		fmt.Fprintf(f.to, "| %s | %s |\n", strings.Join(f.names, ", "), f.comment)
	}
	f.names, f.comment = nil, ""
}

// structOf returns the name of the type that a field's type is made of, and how its fields are
// reached.
func structOf(e ast.Expr) (name, many string) {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name, ""
	case *ast.StarExpr:
		return structOf(e.X)
	case *ast.ArrayType:
		name, many = structOf(e.Elt)
		return name, "[]" + many
	}
	return "", ""
}

// beginsWithName matches the beginning of a Go comment that names the field, which has another name
// in JSON.
var beginsWithName = regexp.MustCompile(`^[A-Z]\w*(, [A-Z]\w*)*( and [A-Z]\w*)? (is|are) `)

// commentOf is the text of a field's comment, without its final period.
func commentOf(field *ast.Field) string {
	text := field.Comment.Text()
	if text == "" {
		text = field.Doc.Text()
	}
	text = strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
	return beginsWithName.ReplaceAllString(text, "")
}
