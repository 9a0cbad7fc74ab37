package capture_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
)

// BenchmarkCaptures measures time and memory per message, for twenty thousand messages or ten times
// as many.
func BenchmarkCaptures(b *testing.B) {
	for _, messages := range []int{20_000, 200_000} {
		x := newTalk(b, 1)
		program := learned(b, body(1))
		x.calls(messages/2, program, func(i int) []byte { return fmt.Appendf(nil, "%s", body(i*7919)) })
		x.close()
		p := newPackets(b)
		c := p.connect(1000)
		c.carry(x, 1400)
		c.end()
		file := p.bytes()
		for name, input := range map[string]func() io.Reader{
			"file": func() io.Reader { return bytes.NewReader(file) },
			"pipe": func() io.Reader { return once{bytes.NewReader(file)} },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, messages), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					n := 0
					r := capture.NewReader(b.Context(), capture.DecodeConfig{Starts: true})
					for ev, err := range r.Captures(b.Context(), capture.Input{Octets: input()}) {
						require.NoError(b, err)
						if ev.Message != nil {
							n++
						}
					}
					require.Equal(b, messages, n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*messages), "ns/message")
			})
		}
	}
}
