//go:build interop

package real

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInteropRealClients: of the cells that `compare -only real` has, four. All replies are right
// through the pair and the tunnels, the pair takes less than a zlib tunnel, a connection for each
// call no more than its share, and the estimate of a recording is that of the pair.
func TestInteropRealClients(t *testing.T) {
	for _, program := range []string{"java", "javac", "mvn", "npm", "node", "python3", "curl", "gcc", "soapcpp2",
		"wsdl2h", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			require.Empty(t, os.Getenv("HHFR_CI"), "%s is not installed", program)
			t.Skip(program, " is not installed")
		}
	}
	cells, err := parseCells(`
requests  http.server  kept    20  readings
requests  http.server  closed  20  readings
node-soap gsoap        kept    20  readings
gsoap     cxf          kept    20  readings`, false)
	require.NoError(t, err)
	s, err := openStacks(t.Context())
	require.NoError(t, err)
	defer s.close()
	kept := map[string]Traffic{}
	for _, c := range cells {
		var wrong []string
		for try := range 3 { // on a busy machine a client may connect before the proxy sees it leave
			row, err := s.measure(t.Context(), c, filepath.Join(t.TempDir(), "values"))
			require.NoError(t, err, c)
			t.Logf("%s: plain %d, zlib %d, zstd %d, pair %d, per address %d, estimate %d", c, row.Direct.Payload,
				row.Zlib.Payload, row.Zstd.Payload, row.Pair.Payload, row.PerAddress.Payload, row.Estimate.Payload)
			pair, estimate, before := row.Pair, row.Estimate, kept[c.Client+c.Server]
			if c.Connections == Closed {
				pair, estimate = row.PerAddress, row.EstimatePerAddress
			} else {
				kept[c.Client+c.Server] = pair
			}
			if wrong = wrongOf(pair, estimate, row.Zlib, before); len(wrong) == 0 {
				break
			}
			t.Log("try ", try+1, wrong)
		}
		assert.Empty(t, wrong, c)
	}
}

// wrongOf says what is not as it should be of what a pair took. before is what the same calls took
// on one connection, if these have one each.
func wrongOf(pair, estimate, zlib, before Traffic) (wrong []string) {
	if before.Payload > 0 && pair.To(before) > 1.25 {
		wrong = append(wrong, fmt.Sprintf("%.3f of a kept connection", pair.To(before)))
	}
	if pair.To(zlib) >= 0.85 {
		wrong = append(wrong, fmt.Sprintf("%.3f of a zlib tunnel", pair.To(zlib)))
	}
	if off := estimate.To(pair) - 1; math.Abs(off) > 0.03 {
		wrong = append(wrong, fmt.Sprintf("the estimate is off by %.3f", off))
	}
	if off := float64(estimate.Packets)/float64(pair.Packets) - 1; math.Abs(off) > 0.05 {
		wrong = append(wrong, fmt.Sprintf("the packets of the estimate are off by %.3f", off))
	}
	return wrong
}
