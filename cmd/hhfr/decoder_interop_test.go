//go:build interop

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestInteropDecoderOfCompressedSegments: the Python decoder, with libzstd, returns the vectors and
// all messages of the corpus from a stream with every stage.
func TestInteropDecoderOfCompressedSegments(t *testing.T) {
	python, script, dir := pythonWithZstd(t), shared.Testdata(t, "..", "scripts", "decode.py"), t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), python, append([]string{script}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	out := run("vectors", shared.Testdata(t, "vectors"))
	assert.NotRegexp(t, "(?m)^skip ", out)
	assert.Contains(t, out, filepath.Join("zstd", "packed.json"))

	files := shared.Messages(t)
	stream, back := filepath.Join(dir, "all.hhfr"), filepath.Join(dir, "back")
	code, _, stderr := do(t, append([]string{"transcode", "--out", stream, "-q"}, files...)...)
	require.Zero(t, code, stderr)
	assert.Equal(t, len(files), strings.Count(run("stream", stream, "--store", dir, "--save-dir", back), " verified\n"))
	for i, path := range files {
		require.Equal(t, string(shared.Read(t, path)),
			string(shared.Read(t, filepath.Join(back, fmt.Sprintf("%06d-request.xml", i+1)))), path)
	}
}

// pythonWithZstd is a Python with a module for zstd: the installed one, or a virtual environment
// into which the module is installed.
func pythonWithZstd(t *testing.T) string {
	for _, module := range []string{"compression.zstd", "zstandard"} {
		if exec.CommandContext(t.Context(), "python3", "-c", "import "+module).Run() == nil {
			return "python3"
		}
	}
	env := t.TempDir()
	for _, c := range [][]string{{"python3", "-m", "venv", env},
		{filepath.Join(env, "bin", "pip"), "-q", "install", "zstandard"}} {
		out, err := exec.CommandContext(t.Context(), c[0], c[1:]...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return filepath.Join(env, "bin", "python3")
}
