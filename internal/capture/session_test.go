package capture_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
)

// tree are the messages of testdata/soap, which testdata/pcap/session.pcapng records
// (scripts/session.sh).
func tree(t testing.TB) (messages [][]byte) {
	for _, path := range shared.Files(t, shared.Testdata(t, "soap"),
		func(p string) bool { return filepath.Ext(p) == ".xml" }) {
		messages = append(messages, shared.Read(t, path))
	}
	return messages
}

// TestRecordingInTheTree: a recording made once, by an earlier build, gives its messages back.
func TestRecordingInTheTree(t *testing.T) {
	store, err := directory.Open(shared.Testdata(t, "pcap", "store"), directory.Config{ReadOnly: true})
	require.NoError(t, err)
	defer func() { _ = store.Close() }()
	r := decode(t, shared.Read(t, shared.Testdata(t, "pcap", "session.pcapng")), store)
	assert.False(t, r.Partial())
	dir := t.TempDir()
	save(t, r, dir)
	requireSaved(t, dir, tree(t))
}

// TestIndependentDecoder: a decoder written only from docs/wire-format.md reads the vectors and the
// recordings.
func TestIndependentDecoder(t *testing.T) {
	python := shared.Program(t, "python3")
	script := shared.Testdata(t, "..", "scripts", "decode.py")
	lines := 0
	for _, name := range []string{"decode.py", "unpack.py"} {
		lines += bytes.Count(shared.Read(t, shared.Testdata(t, "..", "scripts", name)), []byte{'\n'})
	}
	assert.LessOrEqual(t, lines, 610, "lines of the decoder")
	for name, most := range map[string]int{"plain.py": 230, "fold.py": 70} {
		lines := bytes.Count(shared.Read(t, shared.Testdata(t, "..", "scripts", name)), []byte{'\n'})
		assert.LessOrEqual(t, lines, most, "lines of %s", name)
	}
	run := func(args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), python, append([]string{script}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run("vectors", shared.Testdata(t, "vectors"))
	for _, name := range []string{"session.pcapng", "upgraded.pcapng"} {
		dir := t.TempDir()
		run("capture", shared.Testdata(t, "pcap", name), "--store", shared.Testdata(t, "pcap", "store"), "--save-dir",
			dir)
		requireSaved(t, dir, tree(t))
	}
}
