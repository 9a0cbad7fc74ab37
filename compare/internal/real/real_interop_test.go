//go:build interop

package real

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestInteropRealClients: of the cells that `compare -only real` has, four. All replies are right
// through the pair and the tunnels, the pair takes less than a zlib tunnel, a connection for each
// call no more than its share, and the estimate of a recording is that of the pair.
func TestInteropRealClients(t *testing.T) {
	for _, program := range []string{"java", "javac", "mvn", "npm", "node", "python3", "curl", "gcc", "soapcpp2",
		"wsdl2h", "openssl"} {
		shared.Program(t, program)
	}
	cells, err := parseCells(`
requests  http.server  kept    20  readings
requests  http.server  closed  20  readings
node-soap gsoap        kept    20  readings
gsoap     cxf          kept    20  readings`, false)
	require.NoError(t, err)
	s, err := openStacks(t.Context(), filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	defer s.close()
	kept := map[string]Traffic{}
	for _, c := range cells {
		row, err := s.measure(t.Context(), c, filepath.Join(t.TempDir(), "values"))
		require.NoError(t, err, c)
		t.Logf("%s: plain %d, zlib %d, zstd %d, pair %d, per address %d, estimate %d", c, row.Direct.Payload,
			row.Zlib.Payload, row.Zstd.Payload, row.Pair.Payload, row.PerAddress.Payload, row.Estimate.Payload)
		pair, estimate := row.Pair, row.Estimate
		if c.Connections == Closed {
			pair, estimate = row.PerAddress, row.EstimatePerAddress
			assert.LessOrEqual(t, pair.To(kept[c.Client+c.Server]), 1.25, "%s: to a kept connection", c)
		} else {
			kept[c.Client+c.Server] = pair
		}
		assert.Less(t, pair.To(row.Zlib), 0.85, "%s: to a zlib tunnel", c)
		assert.InDelta(t, 1, estimate.To(pair), 0.03, "%s: payload of the estimate", c)
		assert.InEpsilon(t, pair.Packets, estimate.Packets, 0.05, "%s: packets of the estimate", c)
	}
}
