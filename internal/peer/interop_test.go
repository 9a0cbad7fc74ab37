//go:build interop

package peer_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
)

// zeep is the release of the Python SOAP client that the services are held to.
const zeep = "zeep==4.3.3"

// TestInteropZeep: another SOAP library calls the services by their descriptions, in both versions
// of SOAP. It is installed into a folder of the test's.
func TestInteropZeep(t *testing.T) {
	dir := t.TempDir()
	run := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		require.NoError(t, err, "%s %s\n%s", program, strings.Join(args, " "), out)
		return string(out)
	}
	run("python3", "-m", "venv", dir)
	python := filepath.Join(dir, "bin", "python")
	if runtime.GOOS == "windows" {
		python = filepath.Join(dir, "Scripts", "python.exe")
	}
	run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", zeep)

	s := start(t, peer.Concat(), peer.Sum(), peer.Records(), peer.GeoIP(peer.DutchRanges()), peer.Blob(),
		peer.Ticker(nil, 100*time.Millisecond))
	assert.Contains(t, run(python, filepath.Join("testdata", "zeep_client.py"), s.URL("")), "agrees")
}
