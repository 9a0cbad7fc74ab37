package gocode_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/gocode"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wsdl"
)

func TestCorpus(t *testing.T) {
	dir := shared.Dir(t, "corpus")
	files := shared.Files(t, dir, func(p string) bool { return filepath.Ext(p) == ".wsdl" })
	generated, refused, notes := 0, 0, 0
	why := map[string]int{}
	out := os.Getenv("GEN_OUT")
	for i, file := range files {
		_ = i
		d, err := wsdl.Load(t.Context(), file, wsdl.SourceOptions{Texts: true})
		if err != nil {
			continue
		}
		p, err := gocode.Generate(d, gocode.GoOptions{Package: "service"})
		require.NoError(t, err, file)
		generated += len(p.Generated)
		refused += len(p.Refused)
		notes += len(p.Notes)
		for _, r := range p.Refused {
			w := r.Reasons[0].What
			if len(r.Operation.Problems) > 0 {
				w = "not compiled"
			}
			if strings.HasPrefix(w, "the type ") {
				w = "abstract"
			}
			why[w]++
		}
		if p.Source == nil {
			continue
		}
		if out != "" {
			sub := filepath.Join(out, "p"+strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(strings.TrimPrefix(file, dir)))
			os.MkdirAll(sub, 0o755)
			os.WriteFile(filepath.Join(sub, "gen.go"), p.Source, 0o644)
		}
		_, err = parser.ParseFile(token.NewFileSet(), file, p.Source, parser.AllErrors)
		assert.NoError(t, err)
	}
	t.Logf("%d generated, %d refused, %d notes", generated, refused, notes)
	for w, n := range why {
		t.Logf("%5d %s", n, w)
	}
}
