package gocode_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/gocode"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

// trip is a message that a program of generated code reads and writes again.
type trip struct {
	Package, Type string
	Text          []byte
	of            string
	exact         bool // the structs carry all of such messages
}

// TestCorpus: the WSDLs there give code that compiles, and samples of messages, read into the
// structs and written again, are the same, as far as they have nothing that comments say is not
// carried. Some WSDLs, and some operations of each, are enough by day (HHFR_NIGHTLY: all).
func TestCorpus(t *testing.T) {
	dir := shared.Dir(t, "corpus")
	files := shared.Files(t, dir, func(p string) bool { return filepath.Ext(p) == ".wsdl" })
	m := newModule(t)
	generated, refused, every, most := 0, 0, 10, 8
	if os.Getenv("HHFR_NIGHTLY") != "" {
		every, most = 1, 40
	}
	var trips []trip
	for i, file := range files {
		d, err := wsdl.Load(t.Context(), file, wsdl.SourceOptions{Texts: true})
		if err != nil {
			continue
		}
		p := formed(t, d, gocode.GoOptions{Package: "service"})
		generated += len(p.Generated)
		refused += len(p.Refused)
		if p.Source == nil {
			continue
		}
		if i%every != 0 {
			continue
		}
		name := "p" + strconv.Itoa(i)
		m.write(filepath.Join("whole", name, "service.go"), string(p.Source))
		var some []string
		for j := 0; j < len(p.Generated); j += len(p.Generated)/most + 1 {
			some = append(some, p.Generated[j].Name)
		}
		p = formed(t, d, gocode.GoOptions{Package: "service", Operations: some})
		parsed, err := parser.ParseFile(token.NewFileSet(), file, p.Source, parser.ParseComments)
		require.NoError(t, err)
		types := messagesIn(parsed)
		m.add(name, p.Source, types)
		trips = append(trips, samplesOf(d, p, name, file, types)...)
	}
	t.Logf("%d operations generated, %d refused", generated, refused)
	assert.Greater(t, generated, 4000)
	for _, one := range trips {
		require.NotEmpty(t, one.Type, one.of)
	}
	m.run(t, trips)
	m.do(t, "vet", "./whole/...")
}

// add adds a package, with a function that reads and writes its messages.
func (m *module) add(name string, source []byte, types map[string]message) {
	m.write(filepath.Join(name, "service.go"), string(source))
	var b strings.Builder
	b.WriteString(tripCode)
	b.WriteString("func TripCheck() error {\n\treturn errors.Join(\n")
	for _, op := range operationVariable.FindAllSubmatch(source, -1) {
		fmt.Fprintf(&b, "\t\tcheck(%s),\n", op[1])
	}
	b.WriteString("\t)\n}\n\n")
	b.WriteString("func TripMessage(name string, text []byte) ([]byte, error) {\n\tswitch name {\n")
	for _, one := range types {
		fmt.Fprintf(&b, "\tcase %q:\n\t\treturn trip[%s](text)\n", one.name, one.name)
	}
	b.WriteString("\t}\n\treturn nil, fmt.Errorf(\"no type %s\", name)\n}\n")
	m.write(filepath.Join(name, "trip.go"), b.String())
	m.checks += fmt.Sprintf("\t%s.TripCheck,\n", name)
	m.imports += fmt.Sprintf("\t%s %q\n", name, "example.com/trips/"+name)
	m.cases += fmt.Sprintf("\t%q: %s.TripMessage,\n", name, name)
}

// operationVariable is where a file has the operation of its methods.
var operationVariable = regexp.MustCompile(`(?m)^\s*(operation\S+)\s+= sync`)

// tripCode reads a message and writes it again.
const tripCode = `package service

import (
	"errors"
	"fmt"

	"github.com/hhfr/hhfr"
)

func check[T any](make func() (T, error)) error {
	_, err := make()
	return err
}

func trip[T any](text []byte) ([]byte, error) {
	b, err := hhfr.Bind[T]()
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := b.Read(text, v); err != nil {
		return nil, err
	}
	return b.Append(nil, v)
}

`

const tripMain = `package main

import (
	"encoding/json"
	"io"
	"os"

%s)

var packages = map[string]func(string, []byte) ([]byte, error){
%s}

var checks = []func() error{
%s}

func main() {
	for _, check := range checks {
		if err := check(); err != nil {
			panic(err)
		}
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var trip struct{ Package, Type string; Text []byte }
		if err := in.Decode(&trip); err == io.EOF {
			return
		} else if err != nil {
			panic(err)
		}
		text, err := packages[trip.Package](trip.Type, trip.Text)
		var done struct{ Text []byte; Err string }
		if done.Text = text; err != nil {
			done.Err = err.Error()
		}
		if err := out.Encode(done); err != nil {
			panic(err)
		}
	}
}
`

func (m *module) run(t *testing.T, trips []trip) {
	t.Helper()
	m.write("main.go", fmt.Sprintf(tripMain, m.imports, m.cases, m.checks))
	m.do(t, "build", "-o", "trips", ".")
	var in bytes.Buffer
	for _, one := range trips {
		require.NoError(t, json.NewEncoder(&in).Encode(one))
	}
	run := exec.CommandContext(t.Context(), filepath.Join(m.dir, "trips"))
	run.Stdin = &in
	out, err := run.Output()
	require.NoError(t, err)
	dec := json.NewDecoder(bytes.NewReader(out))
	exact := 0
	for _, one := range trips {
		var done struct {
			Text []byte
			Err  string
		}
		require.NoError(t, dec.Decode(&done))
		if one.returns(t, done.Text, done.Err) {
			exact++
		}
	}
	t.Logf("%d messages read and written, %d of them the same to the last value", len(trips), exact)
}

// returns compares what came back with what was read; it reports whether it has the same values.
func (one *trip) returns(t *testing.T, text []byte, failed string) bool {
	if failed != "" {
		if one.exact || !strings.Contains(failed, ": found ") { // another element in the place of the one in Body
			assert.Fail(t, failed, "%s: %s", one.of, one.Text)
		}
		return false
	}
	was, err := xsd.ParseMessage("was", one.Text)
	require.NoError(t, err)
	is, err := xsd.ParseMessage("is", text)
	if !assert.NoError(t, err, "%s: %s", one.of, text) {
		return false
	}
	differ := difference(was, is)
	if one.exact {
		assert.Empty(t, differ, "%s:\n%s\n%s", one.of, one.Text, text)
	}
	return differ == ""
}

// difference is where two elements have other values; "": nowhere.
func difference(a, b *xsd.DocumentNode) string {
	if a.Name != b.Name {
		return fmt.Sprintf("%s, not %s", b.Name, a.Name)
	}
	if len(a.Children) != len(b.Children) {
		return fmt.Sprintf("%s has %d elements, not %d", a.Name, len(b.Children), len(a.Children))
	}
	for _, x := range a.Attrs {
		i := slices.IndexFunc(b.Attrs, func(y xsd.DocumentAttr) bool { return x.Name == y.Name })
		if i < 0 || !same(x.Value, b.Attrs[i].Value) {
			return fmt.Sprintf("%s has another attribute %s", a.Name, x.Name)
		}
	}
	if len(a.Attrs) != len(b.Attrs) {
		return fmt.Sprintf("%s has %d attributes, not %d", a.Name, len(b.Attrs), len(a.Attrs))
	}
	if len(a.Children) == 0 && !same(a.Text, b.Text) {
		return fmt.Sprintf("%s is %q, not %q", a.Name, b.Text, a.Text)
	}
	for i := range a.Children {
		if found := difference(a.Children[i], b.Children[i]); found != "" {
			return found
		}
	}
	return ""
}

// same reports whether two texts are one value.
func same(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return x == y
	}
	m, errM := base64.StdEncoding.DecodeString(a)
	n, errN := base64.StdEncoding.DecodeString(b)
	return errM == nil && errN == nil && bytes.Equal(m, n)
}

// message is the struct of an element, and whether it carries all of it.
type message struct {
	name  string
	exact bool
}

// messagesIn are the messages of generated code, by the tags of their XMLName.
func messagesIn(file *ast.File) map[string]message {
	structs, lacking := map[string]*ast.StructType{}, map[string]bool{}
	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
			spec := d.Specs[0].(*ast.TypeSpec)
			if s, ok := spec.Type.(*ast.StructType); ok {
				structs[spec.Name.Name] = s
				lacking[spec.Name.Name] = strings.Contains(d.Doc.Text(), "Not carried:")
			}
		}
	}
	all := map[string]message{}
	for name, s := range structs {
		if f := s.Fields.List; len(f) > 0 && len(f[0].Names) > 0 && f[0].Names[0].Name == "XMLName" {
			met := map[string]bool{}
			tag, _ := strconv.Unquote(f[0].Tag.Value)
			all[reflect.StructTag(tag).Get("xml")] = message{name, carriesAll(name, structs, lacking, met)}
		}
	}
	return all
}

func carriesAll(name string, structs map[string]*ast.StructType, lacking, met map[string]bool) bool {
	if met[name] || structs[name] == nil {
		return true
	}
	met[name] = true
	if lacking[name] {
		return false
	}
	all := true
	for _, f := range structs[name].Fields.List {
		ast.Inspect(f.Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && !carriesAll(id.Name, structs, lacking, met) {
				all = false
			}
			return true
		})
	}
	return all
}

// samplesOf are samples of the messages of generated operations.
func samplesOf(
	d *wsdl.ServiceDescription, p *gocode.GoProgram, name, file string, types map[string]message,
) (list []trip) {
	for _, op := range p.Generated {
		for _, m := range []*wsdl.EnvelopeParts{op.Input, op.Output} {
			if m == nil || len(m.Body) == 0 {
				continue
			}
			e := m.Body[0].Name
			found := types[strings.TrimSpace(e.Space+" "+e.Local)]
			for seed := range uint64(3) {
				text, err := values.New(d.Set(), &xsd.Contents{Body: m.Body}, op.SOAP).Sample(seed)
				if err != nil {
					continue
				}
				list = append(list, trip{
					Package: name, Type: found.name, Text: inBody(text), exact: found.exact,
					of: fmt.Sprintf("%s %s (%s) seed %d", filepath.Base(file), op.Name, found.name, seed),
				})
			}
		}
	}
	return list
}

var (
	bodyElement  = regexp.MustCompile(`(?s)^.*<[\w-]+:Body[^>]*><([^\s/>]+)(.*)</[\w-]+:Body>`)
	declarations = regexp.MustCompile(`xmlns:\w+="[^"]*"`)
)

// inBody is the element in the Body of a sample, with the namespaces of its envelope.
func inBody(envelope []byte) []byte {
	parts := bodyElement.FindSubmatch(envelope)
	start, _, _ := bytes.Cut(envelope, []byte(">"))
	spaces := bytes.Join(declarations.FindAll(start, -1), []byte(" "))
	return fmt.Appendf(nil, "<%s %s%s", parts[1], spaces, parts[2])
}
