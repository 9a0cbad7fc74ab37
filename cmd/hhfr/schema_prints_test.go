package main

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/schema"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// vectors is the folder with the vectors of docs/schemas.md: in each folder descriptions of one
// message e, in canonical.txt its canonical form, and in names.txt its fingerprint and identifier.
var vectors = filepath.Join("..", "..", "testdata", "vectors", "schema")

// All descriptions of a message have its canonical form and its names, by the command; those of
// different messages have different ones.
func TestSchemaVectors(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(vectors, "*", "canonical.txt"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(folders), 10)
	seen := map[string]string{}
	for _, at := range folders {
		folder := filepath.Dir(at)
		form, err := os.ReadFile(at)
		require.NoError(t, err)
		names, err := os.ReadFile(filepath.Join(folder, "names.txt"))
		require.NoError(t, err)
		uri, id := namesOf(form)
		assert.Equal(t, uri+"\n"+id+"\n", string(names), folder)
		assert.Empty(t, seen[uri], "%s has the fingerprint of %s", folder, seen[uri])
		seen[uri] = folder
		for _, file := range descriptionsIn(t, folder) {
			code, out, errs := do(t, "schema", "show", "--canonical", file, "e")
			assert.Equal(t, exit.Done, code, errs)
			assert.Equal(t, string(form), out, file)
			code, out, errs = do(t, "schema", "compile", file, "-o", "json")
			assert.Equal(t, exit.Done, code, errs)
			assert.Contains(t, out, uri, file)
			assert.Contains(t, out, id, file)
		}
	}
}

// descriptionsIn are the files directly in a folder; those below are what they import.
func descriptionsIn(t *testing.T, folder string) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*.xsd", "*.wsdl"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.NotEmpty(t, files, folder)
	return files
}

func namesOf(form []byte) (uri, id string) {
	fp, short := sha256.Sum256(form), md5.Sum(form) //nolint:gosec // as above
	return "urn:hhfr:schema:sha256:" + hex.EncodeToString(fp[:]), hex.EncodeToString(short[:])
}

// What schema hhfr prints has the fingerprint of what it was made of; what the dialect cannot say
// is told with its place.
func TestSchemaHHFR(t *testing.T) {
	printedOf := 0
	folders, err := filepath.Glob(filepath.Join(vectors, "*"))
	require.NoError(t, err)
	for _, folder := range folders {
		names, err := os.ReadFile(filepath.Join(folder, "names.txt"))
		require.NoError(t, err)
		for _, file := range descriptionsIn(t, folder) {
			code, out, errs := do(t, "schema", "hhfr", file, "e")
			if code == exit.Partial {
				assert.Empty(t, out)
				assert.Regexp(t, `e, (input|element): not in the HHFR Schema dialect: \S+: `, errs)
				continue
			}
			require.Equal(t, exit.Done, code, errs)
			printedOf++
			again := filepath.Join(t.TempDir(), "printed.xsd")
			require.NoError(t, os.WriteFile(again, []byte(out), 0o600))
			code, out, errs = do(t, "schema", "compile", again, "-o", "json")
			require.Equal(t, exit.Done, code, errs)
			var got struct{ Compiled []schema.Compiled }
			require.NoError(t, json.Unmarshal([]byte(out), &got))
			assert.Contains(t, string(names), got.Compiled[0].Messages["element"], file)
		}
	}
	assert.GreaterOrEqual(t, printedOf, 8, "the strings, datatypes, arrays and header of the vectors")
}

// The pairs of descriptions in testdata/schema/diff change what verdict.txt says.
func TestSchemaDiffPairs(t *testing.T) {
	pairs, err := filepath.Glob(filepath.Join("..", "..", "testdata", "schema", "diff", "*"))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(pairs), 20)
	for _, pair := range pairs {
		files := descriptionsIn(t, pair)
		require.Len(t, files, 2, pair)
		code, out, errs := do(t, "schema", "diff", files[0], files[1]) // a.*, b.*
		verdict, err := os.ReadFile(filepath.Join(pair, "verdict.txt"))
		require.NoError(t, err)
		assert.Equal(t, string(verdict), out, "%s: %s", pair, errs)
		wanted := exit.Failed
		if string(verdict) == "streams are not affected\n" {
			wanted = exit.Done
		}
		assert.Equal(t, wanted, code, "%s: %s", pair, errs)
	}
}

// The canonical forms of the vectors follow docs/schemas.md: a program says so that was written
// from that page alone. The page shows one of them.
func TestCanonicalFormsAreIndependent(t *testing.T) {
	form, err := os.ReadFile(filepath.Join(vectors, "layout", "canonical.txt"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "schemas.md"))
	require.NoError(t, err)
	uri, _ := namesOf(form)
	assert.Contains(t, string(page), "<!-- vector: layout -->\n```\n"+string(form)+"```\n\n    "+uri+"\n")

	folders, err := filepath.Glob(filepath.Join(vectors, "*"))
	require.NoError(t, err)
	python := shared.Program(t, "python3")
	args := append([]string{filepath.Join("..", "..", "scripts", "canonical.py")}, folders...)
	out, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Regexp(t, `^\d+ canonical forms are right\n$`, string(out))
}
