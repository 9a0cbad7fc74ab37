//go:build interop

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestInteropSequences: the other decoder reads recordings of messages with places in sequences,
// and finds all of them.
func TestInteropSequences(t *testing.T) {
	python := shared.Program(t, "python3")
	dir := t.TempDir()
	url, stop := serveHere(t, "--store", "bolt:"+filepath.Join(dir, "server.db"))
	store, recording, out := filepath.Join(dir, "store"), filepath.Join(dir, "client.pcapng"), filepath.Join(dir, "out")
	args := []string{"stream", strings.TrimSuffix(url, "echo") + "ledger", "--assurance", "exactly-once", "--ordered",
		"--store", store, "--record", recording}
	for n := range 40 {
		name := filepath.Join(dir, entryName(n)+".xml")
		require.NoError(t, os.WriteFile(name, []byte(entryMessage(n)), 0o600))
		args = append(args, name)
	}
	code, _, stderr := do(t, args...)
	require.Zero(t, code, stderr)
	stop()
	said, err := exec.CommandContext(t.Context(), python, shared.Testdata(t, "..", "scripts", "decode.py"), "capture",
		recording, "--store", store, "--save-dir", out).CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.Equal(t, 80, strings.Count(string(said), " verified\n"), "%s", said)
	found := map[string]bool{}
	for _, path := range shared.Files(t, out, func(p string) bool { return filepath.Ext(p) == ".xml" }) {
		found[string(shared.Read(t, path))] = true
	}
	for n := range 40 {
		assert.True(t, found[entryMessage(n)], "message %d", n)
	}
}

func entryName(n int) string { return "entry-" + string(rune('a'+n/26)) + string(rune('a'+n%26)) }
