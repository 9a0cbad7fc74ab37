package ends

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/clock"
)

// BenchmarkWays carries messages as the contestants do: for profiles of one of them. With -cpu 1 it
// has one processor, as they have.
func BenchmarkWays(b *testing.B) {
	var messages [][]byte
	for i := range 1000 {
		var items []byte
		for k := range 10 {
			items = fmt.Appendf(items, "<item>%.4f</item>", float64((i*10+k)*7919%2_000_000)/1e4-100)
		}
		messages = append(messages, fmt.Appendf(nil, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">`+
			`<s:Body><m:sum xmlns:m="urn:example:sum"><input>%s</input></m:sum></s:Body></s:Envelope>`, items))
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
			require.NoError(b, c.carry((b.N+inFlight-1)/inFlight*inFlight))
			b.ReportMetric(float64(clock.Processor()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
