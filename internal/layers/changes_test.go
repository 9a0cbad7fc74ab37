package layers_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inFile is what a row says is declared in a file.
var inFile = regexp.MustCompile("`(\\w+)` in `([\\w/.]+\\.go)`")

// TestChangesHaveTheirPlaces: each folder and file in the table of changes of docs/architecture.md
// exists, declares what it is said to, and has the tests that fail until a change is whole.
func TestChangesHaveTheirPlaces(t *testing.T) {
	_, table, found := strings.Cut(docs(t, "architecture.md"), "\n| change | where | test |\n|---|---|---|\n")
	require.True(t, found, "docs/architecture.md has no table of changes")
	table, _, _ = strings.Cut(table, "\n\n")
	have := tests(t)
	rows := strings.Split(table, "\n")
	require.Len(t, rows, 10)
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		require.Len(t, cells, 3, row)
		places := 0
		for _, m := range inTicks.FindAllStringSubmatch(cells[1], -1) {
			if strings.Contains(m[1], "/") {
				_, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(m[1])))
				assert.NoError(t, err, row)
				places++
			}
		}
		assert.NotZero(t, places, row)
		for _, m := range inFile.FindAllStringSubmatch(cells[1], -1) {
			assert.True(t, declares(t, m[2], m[1]), "%s declares no %s", m[2], m[1])
		}
		named := inTicks.FindAllStringSubmatch(cells[2], -1)
		require.Greater(t, len(named), 1, "a folder and its tests: %s", row)
		for _, test := range named[1:] {
			assert.True(t, have[named[0][1]][test[1]], "%s has no %s", named[0][1], test[1])
		}
	}
}

// declares reports whether a file has a declaration of a name, outside functions; for a function
// also as a method.
func declares(t *testing.T, file, name string) (found bool) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", filepath.FromSlash(file)), nil, 0)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			found = found || d.Name.Name == name
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok {
					for _, n := range v.Names {
						found = found || n.Name == name
					}
				}
			}
		}
	}
	return found
}
