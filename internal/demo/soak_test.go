//go:build soak

package demo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/demo"
)

// TestSoakTourTimes: each session of the tour takes its bytes by bandwidth and its round trips, by
// its own counts, within a tenth, and hhfr is faster than SOAP on thin links.
func TestSoakTourTimes(t *testing.T) {
	messages, err := demo.Builtin()
	require.NoError(t, err)
	for _, name := range []string{"14k4", "gprs", "edge"} {
		r, err := demo.Run(t.Context(), demo.Config{Messages: messages, Link: name, Dir: t.TempDir()})
		require.NoError(t, err, name)
		for _, w := range r.Ways {
			assert.InDelta(t, 0, w.Off(), 0.10, "%s %+v", name, w)
			assert.LessOrEqual(t, w.CPU, 0.05, "%s %+v", name, w)
			if w.Name != demo.SOAP {
				assert.Positive(t, w.BreakEven, "%s %+v", name, w)
			}
		}
	}
}
