package capture_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shared"
)

// What places cost adds up to what came, place by place of the shape, and messages are the same
// whether or not somebody asks.
func TestCarriage(t *testing.T) {
	octets := shared.Read(t, shared.Testdata(t, "pcap", "session.pcapng"))
	var bodies [2][]string
	itemized := 0
	for i, cfg := range []capture.DecodeConfig{{}, {Carriage: true}} {
		r := capture.NewReader(t.Context(), cfg)
		for ev, err := range r.Captures(t.Context(), capture.Input{Name: "session", Octets: bytes.NewReader(octets)}) {
			require.NoError(t, err)
			m := ev.Message
			if m == nil {
				continue
			}
			bodies[i] = append(bodies[i], string(m.Head)+string(m.Body))
			if m.Carriage == nil {
				continue
			}
			assert.LessOrEqual(t, m.Carriage.Head.Packed+m.Carriage.Body.Packed, m.Wire)
			for _, p := range []capture.CarriedPart{m.Carriage.Head, m.Carriage.Body} {
				if len(p.Places) == 0 {
					continue
				}
				itemized++
				sum, places := int64(0), 0
				for _, bits := range p.Places {
					assert.GreaterOrEqual(t, bits, int64(0))
					sum += bits
				}
				require.NoError(t, shape.PrintNoted(io.Discard, p.Shape, func(int) string { places++; return "" }))
				assert.Len(t, p.Places, places, "%d %s", m.Number, m.Operation.Local)
				assert.InDelta(t, 8*p.Packed, sum, float64(8+2*p.Segments), "%d %s", m.Number, m.Operation.Local)
			}
		}
	}
	assert.Equal(t, bodies[0], bodies[1])
	assert.Greater(t, itemized, 20)
}
