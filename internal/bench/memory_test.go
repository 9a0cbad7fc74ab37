package bench_test

import (
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/experiment"
)

// Over a stream an array takes what it is itself and something that does not grow, in plain SOAP
// its text as well: so the largest under 24 MB is several times larger over a stream, here and
// beside a server whose memory does not count.
func TestMemory(t *testing.T) {
	u, _ := startPeer(t)
	for _, peer := range []*url.URL{nil, u} {
		var heard []experiment.MemoryRow
		r, err := bench.Session(t.Context(), bench.SessionConfig{
			Services: []string{"sum"}, Sizes: []int{1}, Counts: []int{1}, Ways: []bench.SessionWay{bench.Met},
			Link: "wifi", Peer: peer, Overheads: true,
			EachMemory: func(m experiment.MemoryRow) error { heard = append(heard, m); return nil },
		})
		if err != nil {
			require.ErrorIs(t, err, bench.ErrNotTheLink) // a busy machine
		}
		require.Equal(t, heard, r.Memory)
		require.Len(t, r.Memory, 8)
		largest := map[string]experiment.MemoryRow{}
		for _, m := range r.Memory {
			assert.Equal(t, r.Peer, m.Peer)
			if m.LimitOctets > 0 {
				largest[m.Way] = m
				continue
			}
			if m.Size < 100_000 { // what is that small may be gone before it is seen
				continue
			}
			assert.Greater(t, m.PeakOctets, int64(4*m.Size))
			if m.Way == string(bench.SOAPKept) {
				assert.Greater(t, m.PeakOctets, int64(20*m.Size), "the array and its text: %+v", m)
			}
		}
		stream, soap := largest[string(bench.FirstCall)], largest[string(bench.SOAPKept)]
		for _, m := range largest {
			assert.LessOrEqual(t, m.PeakOctets, m.LimitOctets)
			assert.Greater(t, m.PeakOctets, m.LimitOctets/2, "%+v", m)
		}
		assert.Greater(t, stream.Size, 3*soap.Size)
		assert.Less(t, soap.Size, 1_500_000, "text of 16 bytes at least beside each float")
	}
}

// The text of an array is the same, however it is read.
func TestTextOfArrays(t *testing.T) {
	whole, err := io.ReadAll(bench.TextOf([]float32{1.5, -0.25, 1e20}))
	require.NoError(t, err)
	assert.Contains(t, string(whole), "><item>1.5</item><item>-0.25</item><item>1e+20</item></sum>")
	for size := 1; size < 30; size++ {
		var b strings.Builder
		_, err := io.CopyBuffer(struct{ io.Writer }{&b}, bench.TextOf([]float32{1.5, -0.25, 1e20}), make([]byte, size))
		require.NoError(t, err)
		assert.Equal(t, string(whole), b.String())
	}
}
