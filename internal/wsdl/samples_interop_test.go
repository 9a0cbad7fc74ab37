//go:build interop

package wsdl_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
)

// sampledSeeds is how many samples there are of each message, and of each in the fast part.
const sampledSeeds, sampledFast = 20, 2

// TestInteropXmllintTakesSamples: samples of all literal messages of the corpus with one element in
// Body are valid by xmllint, as far as it takes their schemas.
func TestInteropXmllintTakesSamples(t *testing.T) {
	tool := shared.Program(t, "xmllint")
	dir := shared.Dir(t, "corpus")
	seeds := uint64(sampledSeeds)
	if testing.Short() {
		seeds = sampledFast
	}
	messages, samples, without, untaken := 0, 0, 0, 0
	var refused []string
	for _, path := range shared.Files(t, dir, func(p string) bool { return filepath.Ext(p) == ".wsdl" }) {
		d, err := wsdl.Load(t.Context(), path, wsdl.SourceOptions{})
		if err != nil {
			continue
		}
		out := t.TempDir()
		x := schemaExport{dir: out, names: map[string]string{}, spaces: map[string][]string{}}
		x.document(path)
		var files []string
		var calls []*wsdl.EnvelopeParts
		of := map[string]string{}
		for _, o := range d.Operations {
			for _, m := range []*wsdl.EnvelopeParts{o.Input, o.Output} {
				if m == nil || m.Encoded || len(o.Problems) > 0 || len(m.Body) != 1 {
					continue
				}
				messages++
				if o.Style == "rpc" {
					calls = append(calls, m)
				}
				tr := values.New(d.Set(), m.Contents(), o.SOAP)
				for seed := range seeds {
					text, err := tr.Sample(seed)
					if err != nil {
						without++
						break
					}
					file := filepath.Join(out, fmt.Sprintf("%d.xml", len(files)))
					require.NoError(t, os.WriteFile(file, textOf(t, bodyOf(text)), 0o600))
					files = append(files, file)
					of[file] = fmt.Sprintf("%s: %s, seed %d", filepath.Base(path), o.Name, seed)
				}
			}
		}
		if len(files) == 0 {
			continue
		}
		x.calls(t, calls)
		driver := x.finish(t)
		for part := range slices.Chunk(files, 1000) {
			var said bytes.Buffer
			args := append([]string{"--nonet", "--noout", "--schema", driver}, part...)
			c := exec.CommandContext(t.Context(), tool, args...)
			c.Stderr = &said
			_ = c.Run() // its verdicts are what counts
			found := fits.FindAllStringSubmatch(said.String(), -1)
			if len(found) == 0 { // the schemas are none by xmllint
				untaken += len(part)
				continue
			}
			for _, f := range found {
				samples++
				why := whyOf(said.String(), f[1])
				switch {
				case f[2] == "validates":
				case strings.Contains(why, "No matching global declaration available"):
					untaken++ // of a schema that nothing says the place of
				default:
					refused = append(refused, of[f[1]]+"\n"+why)
				}
			}
		}
		require.NoError(t, os.RemoveAll(out))
	}
	t.Logf("%d messages: %d samples compared, %d messages without, %d samples of schemas that xmllint does not take; "+
		"%d refused", messages, samples, without, untaken, len(refused))
	assert.Greater(t, samples, 10_000)
	for _, why := range refused[:min(len(refused), 40)] {
		t.Error(why)
	}
}

// whyOf is what xmllint says of a file.
func whyOf(said, file string) string {
	var lines []string
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, file+":") && len(lines) < 2 {
			lines = append(lines, strings.TrimPrefix(line, file))
		}
	}
	return strings.Join(lines, "")
}
