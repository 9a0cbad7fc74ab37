//go:build interop

package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestInteropEXI compares our bytes per message, framing included, with those of EXI at its best
// without a compressor: strict, by a schema that knows every element and type.
func TestInteropEXI(t *testing.T) {
	limits := map[string]float64{
		"w2-10floats": 0.85, "w2-100floats": 0.85, "w2-1000floats": 0.85,
		"w3-20records": 0.6, "w3-100records": 0.6, "w3-500records": 0.6,
		"w1-4strings": 1, "w1-8strings": 1,
	}
	var folders []string
	for name := range limits {
		folders = append(folders, filepath.Join(shared.Dir(t), "workloads", name))
	}
	exi := exiSizes(t, folders)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(folder, "*.xml"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			ours := streamOctets(t, files)
			t.Logf("%.1f bytes per message, EXI %.1f: %.2f", ours, exi[folder], ours/exi[folder])
			assert.LessOrEqual(t, ours, limits[filepath.Base(folder)]*exi[folder])
		})
	}
}

// exiSizes returns the mean EXI size of the messages of each folder, by EXIficient.
func exiSizes(t *testing.T, folders []string) map[string]float64 {
	dir := shared.Testdata(t, "interop", "exi")
	lib := t.TempDir()
	run := func(program string, args ...string) string {
		t.Helper()
		var errs strings.Builder
		c := exec.CommandContext(t.Context(), program, args...)
		c.Stderr = &errs
		out, err := c.Output()
		require.NoError(t, err, "%s: %s%s", program, out, errs.String())
		return string(out)
	}
	run("mvn", "-q", "-B", "-f", filepath.Join(dir, "pom.xml"), "dependency:copy-dependencies",
		"-DoutputDirectory="+lib)
	out := run("java", append([]string{"-cp", filepath.Join(lib, "*"), filepath.Join(dir, "Sizes.java"),
		filepath.Join(dir, "soap.xsd")}, folders...)...)
	sizes := map[string]float64{}
	for line := range strings.Lines(out) {
		size, folder, ok := strings.Cut(strings.TrimSpace(line), " ")
		require.True(t, ok, line)
		var err error
		sizes[folder], err = strconv.ParseFloat(size, 64)
		require.NoError(t, err)
	}
	require.Len(t, sizes, len(folders))
	return sizes
}

// streamOctets sends messages on one stream and returns its bytes per message in that direction,
// without shapes.
func streamOctets(t *testing.T, files []string) float64 {
	url, stop := serveHere(t)
	defer stop()
	code, stdout, stderr := do(t, append([]string{"stream", url, "--require-hhfr", "--concurrency", "1", "-o", "json"},
		files...)...)
	require.Zero(t, code, stderr)
	got := lastSummary(t, stdout)
	require.Equal(t, len(files), got.Messages)
	return float64(got.Stream.Sent-got.Shapes.Sent) / float64(got.Messages)
}
