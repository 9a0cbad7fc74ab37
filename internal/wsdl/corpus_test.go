package wsdl_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

// tally counts what became of the files of other people, and of what is in them.
type tally struct {
	files, whole, lacking, otherwise int // each file is whole, lacks something, or is refused otherwise
	parts, lost, lostOtherwise       int // operations, or elements of an XML Schema
}

// count adds a file by the problems of its parts, of which each must be true.
func (v *tally) count(t *testing.T, found *findings, path string, parts [][]*xsd.Problem) {
	v.files++
	v.parts += len(parts)
	lost, otherwise := 0, 0
	for _, problems := range parts {
		if len(problems) > 0 {
			lost++
		}
		for _, p := range problems {
			if why := found.untrue(t, p); why != "" {
				if otherwise++; otherwise == 1 {
					t.Logf("%s: refused for what is not so: %v: %s", path, p, why)
				}
				break
			}
		}
	}
	v.lost += lost
	v.lostOtherwise += otherwise
	switch {
	case lost == 0:
		v.whole++
	case otherwise == 0:
		v.lacking++
		t.Logf("%s: %d of %d refused", path, lost, len(parts))
	default:
		v.otherwise++
	}
}

// failed adds a file of which nothing was read.
func (v *tally) failed(t *testing.T, found *findings, path string, err error) {
	v.files++
	problem := (*xsd.Problem)(nil)
	require.ErrorAs(t, err, &problem)
	if why := found.broken[path]; why != "" || found.roots[path] != "" {
		v.lacking++
		t.Logf("%v: %s%s", err, why, found.roots[path])
		return
	}
	v.otherwise++
	t.Logf("%s: refused, and it is well-formed: %v", path, err)
}

// check holds that 97 of 100 files are whole, or lack what no file of the corpus has, and how many
// of their parts may be refused otherwise, for what a file of another service declares, too.
func (v *tally) check(t *testing.T, what string, otherwise float64) {
	t.Logf("%d files: %d whole, %d lack something, %d refused otherwise; %d %s: %d refused, %d of them otherwise",
		v.files, v.whole, v.lacking, v.otherwise, v.parts, what, v.lost, v.lostOtherwise)
	assert.Greater(t, v.files, 100)
	assert.GreaterOrEqual(t, float64(v.whole+v.lacking), 0.97*float64(v.files))
	assert.LessOrEqual(t, float64(v.lostOtherwise), otherwise*float64(v.parts))
}

// The WSDL files of other people compile with all their operations, but for those that lack what no
// file of the corpus declares, or are broken: a second reader of the corpus says so.
func TestCorpus(t *testing.T) {
	dir := shared.Dir(t, "corpus")
	found := scan(t, dir)
	var v tally
	encoded := 0
	for _, path := range shared.Files(t, dir, func(p string) bool { return filepath.Ext(p) == ".wsdl" }) {
		out, err := wsdl.Load(t.Context(), path, wsdl.SourceOptions{})
		if err != nil {
			v.failed(t, found, path, err)
			continue
		}
		var parts [][]*xsd.Problem
		for _, o := range out.Operations {
			parts = append(parts, o.Problems)
			if o.Encoded {
				encoded++
			}
		}
		for _, e := range out.Elements { // an XML Schema by another name
			parts = append(parts, e.Problems)
		}
		v.count(t, found, path, parts)
	}
	v.check(t, "operations", 0.01)
	assert.Greater(t, encoded, 100)
	assert.GreaterOrEqual(t, float64(v.whole), 0.84*float64(v.files))
}

// So do the XML Schemas, each alone.
func TestCorpusSchemas(t *testing.T) {
	dir := shared.Dir(t, "corpus")
	found := scan(t, dir)
	var v tally
	for _, path := range shared.Files(t, dir, func(p string) bool { return filepath.Ext(p) == ".xsd" }) {
		out, err := wsdl.Load(t.Context(), path, wsdl.SourceOptions{})
		if err != nil {
			v.failed(t, found, path, err)
			continue
		}
		var parts [][]*xsd.Problem
		for _, e := range out.Elements {
			parts = append(parts, e.Problems)
		}
		v.count(t, found, path, parts)
	}
	v.check(t, "elements", 0.02) // one file has 48 that need a version that only tests of others have
}
