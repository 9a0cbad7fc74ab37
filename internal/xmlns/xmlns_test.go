package xmlns_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A duplicate namespace name, or one with white space, is a mistake that no compiler detects.
func TestEveryNameStandsOnceAndIsAnAbsoluteURI(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "xmlns.go", nil, 0)
	require.NoError(t, err)
	names := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, v := range spec.Values {
			lit, ok := v.(*ast.BasicLit)
			require.True(t, ok, "%s is a literal", spec.Names[i].Name)
			s, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			u, err := url.Parse(s)
			require.NoError(t, err)
			assert.True(t, u.IsAbs(), "%q", s)
			assert.NotContains(t, s, " ")
			assert.Empty(t, names[s], "%q is also %s", s, spec.Names[i].Name)
			names[s] = spec.Names[i].Name
		}
		return true
	})
	require.Greater(t, len(names), 20)
}
