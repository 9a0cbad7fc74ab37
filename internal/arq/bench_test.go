package arq_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/arq"
)

// warm is a pair in its steady state.
func warm(tb testing.TB, drop int, message []byte) *facing {
	tb.Helper()
	p, err := newFacing(arq.Config{Window: 4096, Datagram: 1472})
	require.NoError(tb, err)
	p.Drop = drop
	require.NoError(tb, p.Carry(message, 50_000))
	return p
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	message := make([]byte, 45)
	for _, drop := range []int{0, 50} {
		p := warm(t, drop, message)
		var err error
		got := testing.AllocsPerRun(5, func() { err = p.Carry(message, 5000) })
		require.NoError(t, err)
		assert.Zero(t, got, "every %dth datagram lost: allocations for 5000 messages", drop)
	}
}

// One message is: accepted, put into a datagram, written, read, delivered, committed, acknowledged;
// on one core.
func BenchmarkMessages(b *testing.B) {
	for _, drop := range []int{0, 50} {
		b.Run(fmt.Sprintf("drop=%d", drop), func(b *testing.B) {
			message := make([]byte, 45)
			p := warm(b, drop, message)
			b.ReportAllocs()
			b.ResetTimer()
			if err := p.Carry(message, b.N); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
