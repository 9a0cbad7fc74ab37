package wsdl_test

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

// lack is the reason of a refusal: what a file refers to and does not have. A group that contains
// itself is none by the standard.
var lack = regexp.MustCompile(
	`^(type|element|message|portType|attribute) \S+ is not declared|has no operation|contains itself`)

// The WSDL files of other people compile with all their operations, but for few, which the log
// lists with the reason.
func TestCorpus(t *testing.T) {
	dir := filepath.Join(shared.Dir(t), "corpus", "wsdl")
	whole, all, operations, lost, encoded, encodedLost := 0, 0, 0, 0, 0, 0
	lacks := map[string]int{} // files by what they lack
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".wsdl") {
			return err
		}
		all++
		out, err := wsdl.Load(t.Context(), path, wsdl.SourceOptions{})
		if err != nil {
			t.Logf("%v", err)
			return nil
		}
		operations += len(out.Operations)
		var why *xsd.Problem
		refused := 0
		for _, o := range out.Operations {
			if o.Encoded {
				encoded++
			}
			if len(o.Problems) > 0 {
				refused++
				why = o.Problems[0]
				if o.Encoded {
					encodedLost++
				}
			}
		}
		for _, p := range out.Problems {
			t.Logf("  %s", p)
		}
		lost += refused
		if refused == 0 {
			whole++
		} else {
			t.Logf("%s: %d of %d operations: %v", strings.TrimPrefix(path, dir), refused, len(out.Operations), why)
			found := lack.FindStringSubmatch(why.What)
			if assert.NotNil(t, found, "refused for another reason than something that is missing: %v", why) {
				lacks[cmp.Or(found[1], found[0])]++
			}
		}
		return nil
	})
	require.NoError(t, err)
	for what, files := range lacks {
		t.Logf("%s: %d files", what, files)
	}
	t.Logf("%d of %d whole; %d of %d operations refused", whole, all, lost, operations)
	t.Logf("%d of %d operations in SOAP's encoding refused", encodedLost, encoded)
	assert.Greater(t, all, 100)
	assert.GreaterOrEqual(t, float64(whole), 0.89*float64(all))
	assert.LessOrEqual(t, float64(lost), 0.01*float64(operations))
}

// XML Schemas compile alone, but for what refers to documents that are not there.
func TestCorpusSchemas(t *testing.T) {
	dir := filepath.Join(shared.Dir(t), "corpus", "wsdl")
	files, elements, refused := 0, 0, 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".xsd") {
			return err
		}
		files++
		out, err := wsdl.Load(t.Context(), path, wsdl.SourceOptions{})
		if err != nil {
			t.Logf("%v", err)
			return nil
		}
		elements += len(out.Elements)
		for _, e := range out.Elements {
			if len(e.Problems) > 0 {
				refused++
				assert.Contains(t, e.Problems[0].Error(), "is not declared")
			}
		}
		return nil
	})
	require.NoError(t, err)
	t.Logf("%d files; %d of %d elements refused", files, refused, elements)
	assert.Greater(t, files, 100)
	assert.LessOrEqual(t, float64(refused), 0.1*float64(elements))
}
