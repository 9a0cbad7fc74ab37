//go:build interop

package pcapng_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/shared"
)

// TestInteropTshark: tshark finds no fault in a recording.
func TestInteropTshark(t *testing.T) {
	tshark := shared.Program(t, "tshark")
	name := filepath.Join(t.TempDir(), "r.pcapng")
	file, err := os.Create(name)
	require.NoError(t, err)
	rec := pcapng.NewRecorder(file, nil)
	networks := []string{"tcp4", "pipe", "pipe"}
	if l, err := net.Listen("tcp6", "localhost:0"); err == nil {
		_ = l.Close()
		networks = append(networks, "tcp6")
	}
	for _, network := range networks {
		var c, other net.Conn
		if network == "pipe" {
			c, other = net.Pipe()
		} else {
			c, other = pair(t, network)
		}
		recorded := rec.Conn(c)
		talk(t, recorded, other)
		require.NoError(t, recorded.Close())
		require.NoError(t, other.Close())
	}
	require.NoError(t, rec.Close())
	require.NoError(t, file.Close())
	out, err := exec.Command(tshark, "-n", "-r", name, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
		"-Y", "_ws.expert.severity >= 0x00600000 || tcp.analysis.flags || _ws.malformed").Output()
	require.NoError(t, err)
	assert.Empty(t, string(out))
}
