// Package packaging_test holds what hhfr is installed with against the programs that read it.
package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// exposure is the most that systemd may say of a unit: 10 for a service without any restriction,
// 100 on its scale. Below 20 it calls a service safe.
const exposure = "12"

// TestUnits: systemd takes the units without a warning, and finds them hardened.
func TestUnits(t *testing.T) {
	analyze := shared.Program(t, "systemd-analyze")
	units, err := filepath.Glob("*.service")
	require.NoError(t, err)
	require.Len(t, units, 2)
	dir := t.TempDir()
	for _, name := range units {
		// as installed, but for the program, and with an instance
		text := strings.ReplaceAll(string(shared.Read(t, name)), "/usr/bin/hhfr", "/bin/true")
		unit := filepath.Join(dir, strings.Replace(name, "@", "@one", 1))
		require.NoError(t, os.WriteFile(unit, []byte(text), 0o600))
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", unit).CombinedOutput()
		assert.NoError(t, err, "%s", out)
		assert.NotContains(t, string(out), name[:strings.IndexByte(name, '@')], "a warning about it")
		out, err = exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--no-pager",
			"--threshold="+exposure, unit).CombinedOutput()
		assert.NoError(t, err, "%s", out)
		assert.Contains(t, string(out), "Overall exposure level")
	}
}

// TestContainer: the last stage of the recipe has the binary and nothing that runs as root.
func TestContainer(t *testing.T) {
	text := string(shared.Read(t, "Containerfile"))
	_, last, found := strings.Cut(text, "\nFROM scratch\n")
	require.True(t, found)
	assert.NotContains(t, last, "\nFROM ")
	assert.NotContains(t, last, "\nRUN ", "there is no shell")
	user := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindStringSubmatch(last)
	require.NotNil(t, user, "a number: there is no /etc/passwd")
	assert.NotEqual(t, "0", user[1])
	assert.Contains(t, last, "--chown="+user[1]+":"+user[2], "it can write its state")
	assert.Contains(t, last, `ENTRYPOINT ["/hhfr"]`)
}
