//go:build linux && !race

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// packed is a stream of messages of 4 MB each, which take some hundred bytes on the wire.
func packed(t *testing.T, messages int) (file string, message []byte) {
	t.Helper()
	const row = `<r a="1"><x>the same the same the same the same the same the same</x><y>2</y></r>` + "\n"
	message = []byte(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><op xmlns="urn:h">` +
		strings.Repeat(row, 4_000_000/len(row)) + `</op></s:Body></s:Envelope>`)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "big.xml"), message, 0o600))
	file = filepath.Join(dir, "packed.hhfr")
	code, _, stderr := do(t, append([]string{"transcode", "--out", file, "-q"},
		slices.Repeat([]string{filepath.Join(dir, "big.xml")}, messages)...)...)
	require.Equal(t, exitDone, code, stderr)
	require.Less(t, len(shared.Read(t, file)), 2000*messages)
	return file, message
}

// requireFrugal runs hhfr, which must take no more than 64 MB beside a message.
func requireFrugal(t *testing.T, message int, in io.Reader, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "measured", args...)
	var errs bytes.Buffer
	c.Stdin, c.Stderr = in, &errs
	require.NoError(t, c.Run(), "%s", &errs)
	var most int64
	_, err := fmt.Sscanf(errs.String()[strings.LastIndex(errs.String(), "VmHWM:"):], "VmHWM: %d kB", &most)
	require.NoError(t, err)
	most <<= 10
	t.Logf("%s: %d MB", strings.Join(args[:min(len(args), 9)], " "), most>>20)
	assert.Less(t, most, int64(64<<20+message), "%v", args)
}

// bounded reads a stream of long messages with every command.
func bounded(t *testing.T, messages int) {
	file, message := packed(t, messages)
	octets := shared.Read(t, file)
	dir := t.TempDir()
	requireFrugal(t, len(message), nil, "reconstruct", file, "-q")
	requireFrugal(t, len(message), nil, "reconstruct", file, "-q", "--save-dir", dir)
	requireFrugal(t, len(message), nil, "reconstruct", file, "-q", "-o", "jsonl")
	requireFrugal(t, len(message), bytes.NewReader(octets), "reconstruct", "-", "-q", "-o", "xml")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, messages)
	for _, f := range files {
		require.True(t, bytes.Equal(message, shared.Read(t, filepath.Join(dir, f.Name()))), f.Name())
	}
}

// However long the messages of a stream are in sum, reading it takes little memory beside its
// longest message.
func TestMemoryIsBounded(t *testing.T) { bounded(t, 20) }
