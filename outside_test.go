package hhfr_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOutsideProgram: a program in a module of its own, which can import nothing internal, does
// with each public package what that is for.
func TestOutsideProgram(t *testing.T) {
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	dir := t.TempDir()
	sources, err := filepath.Glob(filepath.Join("testdata", "outside", "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	for _, source := range sources {
		copyFile(t, source, filepath.Join(dir, filepath.Base(source)))
	}
	copyFile(t, "go.sum", filepath.Join(dir, "go.sum"))
	module, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	text := regexp.MustCompile(`(?m)^module .*`).ReplaceAllString(string(module), "module example.com/outside")
	text += "\nrequire github.com/hhfr/hhfr v0.0.0\n\nreplace github.com/hhfr/hhfr => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600))

	build := exec.CommandContext(t.Context(), "go", "build", "-o", "outside", ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), filepath.Join(dir, "outside")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, `hhfr: 200 true
hhfr: 200 true
ctxstore: value
schema: true
soap: true true
negotiate: 1.1 [urn:hhfr:transport:tcp]
streamer: true
streamer: true
wsrm: 1 1
`, string(out))
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, text, 0o600))
}
