package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/wsdl"
)

func TestDescribed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "internal", "typed", "testdata", "orders.wsdl"))
	require.NoError(t, err)
	dir := t.TempDir()
	_, err = largestWSDL(dir)
	require.Error(t, err)
	for name, octets := range map[string][]byte{"a.wsdl": text[:100], "orders.wsdl": text, "z.wsdl": text[:200]} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), octets, 0o600))
	}
	file, err := largestWSDL(dir)
	require.NoError(t, err)
	assert.Equal(t, "orders.wsdl", filepath.Base(file))

	var row describedRow
	require.NoError(t, row.time(t.Context(), file, text))
	for _, nanos := range []float64{row.Etree, row.Compile, row.Named} {
		assert.GreaterOrEqual(t, nanos, 0.0)
	}
	d, err := wsdl.Load(t.Context(), file, wsdl.SourceOptions{})
	require.NoError(t, err)
	require.NoError(t, row.compareAlone(t.Context(), file, text, d))
	assert.Equal(t, aloneOperations, row.Alone)
	assert.Zero(t, row.Changed)
	changed := []byte(strings.Replace(string(text), `name="customerNumber" type="xs:int"`,
		`name="customerNumber" type="xs:string"`, 1))
	require.NoError(t, row.compareAlone(t.Context(), file, changed, d))
	assert.Positive(t, row.Changed)

	var out strings.Builder
	require.NoError(t, runDescribe(t.Context(), []string{file}, nil, &out))
	assert.Regexp(t, `^[1-9][0-9]*\n$`, out.String())
	require.Error(t, runDescribe(t.Context(), nil, nil, &out))
}
