package gocode_test

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/gocode"
	"github.com/hhfr/hhfr/internal/wsdl"
)

// TestGeneratedProgram: what is generated is compiled; its client calls its service, in plain SOAP
// and over a stream.
func TestGeneratedProgram(t *testing.T) {
	m := newModule(t)
	source, err := os.ReadFile(filepath.Join("testdata", "stock.go.golden"))
	require.NoError(t, err)
	program, err := os.ReadFile(filepath.Join("testdata", "run", "main.go"))
	require.NoError(t, err)
	m.write("stock/stock.go", string(source))
	m.write("main.go", string(program))
	m.do(t, "build", "-o", "trips", ".")
	out, err := exec.CommandContext(t.Context(), filepath.Join(m.dir, "trips")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	round := `GetPrice: 12.50 2 2026-11-27T12:00:00+01:00 [1 2 3] <nil> -7
GetPrice: <nil>
GetPrice: true false <&>
Search: [" a  b " "true"]
Search: ["3" "deep"]
Search: true a pattern is wanted
Note: a < b
Move: true
`
	calls := strings.Repeat(round, 3) + "Other: true true\n"
	assert.Equal(t, calls+"over a stream: false\n"+calls+"over a stream: true\n", string(out))
}

// TestOddities: names that collide with others and with those of Go, documents that import each
// other, operations of one name and one element, and what cannot be generated.
func TestOddities(t *testing.T) {
	d, err := wsdl.Load(t.Context(), filepath.Join("testdata", "odd", "odd.wsdl"), wsdl.SourceOptions{Texts: true})
	require.NoError(t, err)
	p := formed(t, d, gocode.GoOptions{Package: "odd"})
	var refused []string
	for _, r := range p.Refused {
		refused = append(refused, r.String())
	}
	where := filepath.Join("testdata", "odd", "odd.wsdl")
	assert.Equal(t, []string{
		"Ping was not generated: " + where + ":40:5: its request has nothing in Body",
		"Typed was not generated: " + where + ":41:5: its request is a type, with no element around it",
		"Notify was not generated: " + where + ":42:5: it has no request: the service begins it",
	}, refused)
	text := oneSpace(string(p.Source))
	for _, line := range []string{
		"func (c *OneWayClient) Client2(ctx context.Context, req *Client) (*Client, error) {",
		`serve(all, "urn:1", operationOneWayClient, s.Client),`, `serve(all, "range", operationOneWayRange, s.Range),`,
		"Client *ClientType `xml:\"urn:odd:a client,omitempty\"`",
		"ClientElement2 *ClientType `xml:\"urn:odd:b Client,omitempty\"`", "ContextX2 Context = \"\\\"\"",
	} {
		assert.Contains(t, text, line)
	}
	m := newModule(t)
	source := strings.Replace(string(p.Source), "package odd", "package service", 1)
	parsed, err := parser.ParseFile(token.NewFileSet(), "odd.go", source, parser.ParseComments)
	require.NoError(t, err)
	types := messagesIn(parsed)
	m.add("odd", []byte(source), types)
	m.run(t, samplesOf(d, p, "odd", "odd.wsdl", types))
	m.do(t, "vet", "./...")
}

// module is a Go module that has generated code, and this library from here.
type module struct {
	dir, cases, checks, imports string
}

func newModule(t *testing.T) *module {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	m := &module{dir: t.TempDir()}
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	text = regexp.MustCompile(`(?m)^module .*`).ReplaceAll(text, []byte("module example.com/trips"))
	text = append(text, "\nrequire github.com/hhfr/hhfr v0.0.0\n\nreplace github.com/hhfr/hhfr => "+root+"\n"...)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	m.write("go.mod", string(text))
	m.write("go.sum", string(sums))
	return m
}

func (m *module) write(name, text string) {
	file := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		panic(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		panic(err)
	}
}

// do runs the go command in the module.
func (m *module) do(t *testing.T, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir, c.Env = m.dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
