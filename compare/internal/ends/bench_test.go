package ends

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/workload"
	"github.com/hhfr/hhfr/pkg/clock"
)

// BenchmarkWays carries messages as the contestants do: for profiles of one of them. With -cpu 1 it
// has one processor, as they have.
func BenchmarkWays(b *testing.B) {
	var messages [][]byte
	for m := range workload.Floats(1, 10) {
		if messages = append(messages, slices.Clone(m)); len(messages) == 1000 {
			break
		}
	}
	for _, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			c, err := w.open(b.Context(), messages)
			require.NoError(b, err)
			b.Cleanup(func() { _ = c.close() })
			require.NoError(b, c.carry(64))
			b.ReportAllocs()
			b.ResetTimer()
			before := clock.Processor()
			require.NoError(b, c.carry(b.N))
			b.ReportMetric(float64(clock.Processor()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
