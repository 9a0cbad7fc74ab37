//go:build interop

package capture_test

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

// TestInteropDatagrams: tshark reads the captures that the tests make, finds nothing odd in them,
// and counts the same datagrams.
func TestInteropDatagrams(t *testing.T) {
	tshark := shared.Program(t, "tshark")
	grams, _ := overUDP(t, badLink+"4", 4096, tree(t))
	for name, octets := range map[string][]byte{
		"tree": shared.Read(t, shared.Testdata(t, "pcap", "datagrams.pcap")),
		"v6":   pcapOf(t, grams, form{v6: true, ng: true}), "fragments": pcapOf(t, grams, form{fragment: 400}),
	} {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, octets, 0o600))
		out, err := exec.CommandContext(t.Context(), tshark, "-n", "-r", file, "-o", "udp.check_checksum:TRUE", "-Y",
			"_ws.malformed || udp.checksum.status == 0").Output()
		require.NoError(t, err)
		assert.Empty(t, string(out), name)
		out, err = exec.CommandContext(t.Context(), tshark, "-n", "-r", file, "-Y", "udp", "-T", "fields", "-e",
			"udp.length").Output()
		require.NoError(t, err)
		assert.Equal(t, decode(t, octets, nil).Stats.UDPDatagrams, strings.Count(string(out), "\n"), name)
	}
}
