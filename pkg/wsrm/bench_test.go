package wsrm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/facing"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// warm is a pair in its steady state.
func warm(tb testing.TB, cfg wsrm.Config, drop int, message []byte) *facing.Pair {
	tb.Helper()
	p, err := facing.New(cfg)
	require.NoError(tb, err)
	p.Drop = drop
	require.NoError(tb, p.Carry(message, 50_000))
	return p
}

func configs() (all []wsrm.Config) {
	for _, ordered := range []bool{true, false} {
		for _, assurance := range []wsrm.Assurance{wsrm.AtLeastOnce, wsrm.ExactlyOnce} {
			all = append(all, wsrm.Config{Assurance: assurance, Ordered: ordered, Window: 4096, Datagram: 1472})
		}
	}
	return all
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	message := make([]byte, 45)
	for _, cfg := range configs() {
		for _, drop := range []int{0, 50} {
			p := warm(t, cfg, drop, message)
			var err error
			got := testing.AllocsPerRun(5, func() { err = p.Carry(message, 5000) })
			require.NoError(t, err)
			assert.Zero(t, got, "%v, ordered %v, every %dth datagram lost: allocations for 5000 messages", cfg.Assurance, cfg.Ordered, drop)
		}
	}
}

// One message is: accepted, put into a datagram, written, read, delivered, committed, acknowledged; on one core.
func BenchmarkMessages(b *testing.B) {
	for _, cfg := range configs() {
		for _, drop := range []int{0, 50} {
			b.Run(fmt.Sprintf("%v/ordered=%v/drop=%d", cfg.Assurance, cfg.Ordered, drop), func(b *testing.B) {
				message := make([]byte, 45)
				p := warm(b, cfg, drop, message)
				b.ReportAllocs()
				b.ResetTimer()
				if err := p.Carry(message, b.N); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}
