package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	all, err := row.time(t.Context(), file, text)
	require.NoError(t, err)
	assert.Positive(t, row.Compile)
	assert.Positive(t, row.Resident)
	require.NoError(t, row.compareAlone(t.Context(), file, text, all))
	assert.Equal(t, aloneOperations, row.Alone)
	assert.Zero(t, row.Changed)
	changed := []byte(strings.Replace(string(text), `name="customerNumber" type="xs:int"`,
		`name="customerNumber" type="xs:string"`, 1))
	require.NoError(t, row.compareAlone(t.Context(), file, changed, all))
	assert.Positive(t, row.Changed)
}
