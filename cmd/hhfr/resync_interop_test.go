//go:build interop

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestInteropResync: the Python decoder, without a store, decodes and verifies all of a capture
// that begins when syncs are asked for.
func TestInteropResync(t *testing.T) {
	python, script := pythonWithZstd(t), shared.Testdata(t, "..", "scripts", "decode.py")
	for _, how := range []string{"SIGUSR2 to near", "SIGUSR2 to far"} {
		out, err := exec.CommandContext(t.Context(), python, script, "capture", captureBehindSync(t, how),
			"--store", t.TempDir()).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Equal(t, 72, strings.Count(string(out), " verified\n"), "%s: %s", how, out)
	}
}
