package hhfr_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
)

// inTurn is message i of kinds that take turns, of each of which elements have names of their own.
var inTurn = map[string]func(kinds, i int) []byte{
	"operations": func(kinds, i int) []byte {
		k := i % kinds
		return fmt.Appendf(nil, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`+
			`<get%04d xmlns="urn:kinds"><customer%04d>%d</customer%04d><limit%04d>%d</limit%04d></get%04d>`+
			`</s:Body></s:Envelope>`, k, k, i*7919%100000, k, k, i%50, k, k)
	},
	"operations behind a header block": func(kinds, i int) []byte {
		k := i % kinds
		return fmt.Appendf(nil, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header>`+
			`<h:n xmlns:h="urn:h">%d</h:n></s:Header><s:Body><get%04d xmlns="urn:kinds"><customer>%d</customer>`+
			`</get%04d></s:Body></s:Envelope>`, i, k, i*7919%100000, k)
	},
	"elements of one operation": func(kinds, i int) []byte {
		k := i % kinds
		return fmt.Appendf(nil, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`+
			`<get xmlns="urn:kinds"><id>%d</id><customer%04d>%d</customer%04d></get></s:Body></s:Envelope>`,
			i, k, i*7919%100000, k)
	},
}

// ofKinds is a client with a stream to a service that returns what it gets, and call of message i
// of kinds that take turns, after so many passes.
func ofKinds(t testing.TB, kinds int, message func(kinds, i int) []byte, passes int) (
	client *hhfr.Client, call func(i int),
) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	client, err := hhfr.Dial(t.Context(), "http://"+start(t, &hhfr.Server{Handler: echo}), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	call = func(i int) {
		sent := message(kinds, i)
		reply, err := client.Call(t.Context(), &hhfr.Request{Body: bytes.NewReader(sent)})
		require.NoError(t, err)
		got, err := reply.ReadAll()
		require.NoError(t, err)
		require.Equal(t, string(sent), string(got))
	}
	for i := range passes * kinds {
		call(i)
	}
	return client, call
}

// TestKindsInTurnAreShort: from the third time on each kind goes by its shape, there and back,
// however alike they begin, and if there were more than are learned at first.
func TestKindsInTurnAreShort(t *testing.T) {
	const kinds, passes = 500, 2
	for name, message := range inTurn {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, call := ofKinds(t, kinds, message, passes)
			before := client.Counters()
			for i := range kinds {
				call(passes*kinds + i)
			}
			after := client.Counters()
			bytes := after.Sent.Wire - before.Sent.Wire + after.Received.Wire - before.Received.Wire
			assert.LessOrEqual(t, bytes, int64(25*kinds))
		})
	}
}

// BenchmarkKindsInTurn is of calls whose kinds take turns, from the third time on.
func BenchmarkKindsInTurn(b *testing.B) {
	for name, message := range inTurn {
		for _, kinds := range []int{10, 100, 1000, 2000} {
			b.Run(fmt.Sprintf("%s/%d", name, kinds), func(b *testing.B) {
				const passes = 2
				client, call := ofKinds(b, kinds, message, passes)
				before := client.Counters()
				benchmarkCPU(b, func(i int) { call(passes*kinds + i) })
				after := client.Counters()
				b.ReportMetric(float64(after.Sent.Wire-before.Sent.Wire)/float64(b.N), "sent-bytes/op")
				b.ReportMetric(float64(after.Received.Wire-before.Received.Wire)/float64(b.N), "received-bytes/op")
			})
		}
	}
}
