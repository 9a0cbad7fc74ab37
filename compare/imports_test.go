package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What carries messages in a measurement is what a module of somebody else has: the public packages
// and commands.
func TestEndsUseThePublicAPI(t *testing.T) {
	files := 0
	require.NoError(t, filepath.WalkDir("internal", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range f.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			assert.False(t, strings.HasPrefix(name, "github.com/hhfr/hhfr/internal/"), "%s imports %s", path, name)
		}
		return nil
	}))
	assert.NotZero(t, files)
}
