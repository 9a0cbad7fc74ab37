//go:build !race

package hhfr_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
)

// TestCallsAllocateLittle: a call looks at its envelope where it is, and knows its own head and
// that of the reply if they came before, whatever fields are in them. What a message takes is in
// few pieces of memory, those of this test among them.
func TestCallsAllocateLittle(t *testing.T) {
	client, err := hhfr.Dial(t.Context(), serve(t, stream, echo), config(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	message := envelope("1.1", "<a>1</a>")
	octets := []byte(message)
	fields := http.Header{"Content-Type": {"text/xml"}, "Authorization": {"Basic eDp5"}}
	for name, c := range map[string]struct {
		request    func() *hhfr.Request
		call, send float64
	}{
		"plain": {func() *hhfr.Request { return &hhfr.Request{Body: hhfr.Body(message)} }, 28, 6},
		"fields": {func() *hhfr.Request {
			return &hhfr.Request{Header: fields, Body: bytes.NewReader(octets)}
		}, 26, 3},
		"string": {func() *hhfr.Request {
			return &hhfr.Request{Header: fields, Body: strings.NewReader(message)}
		}, 28, 5},
		"string, plain": {func() *hhfr.Request { return &hhfr.Request{Body: strings.NewReader(message)} }, 29, 7},
	} {
		call := func() {
			reply, err := client.Call(t.Context(), c.request())
			require.NoError(t, err)
			all, err := reply.ReadAll()
			require.NoError(t, err)
			require.Equal(t, message, string(all))
		}
		send := func() { require.NoError(t, client.Send(t.Context(), c.request())) }
		for range 20 {
			call()
		}
		assert.LessOrEqual(t, testing.AllocsPerRun(500, call), c.call, name)
		assert.LessOrEqual(t, testing.AllocsPerRun(500, send), c.send, name)
	}
}
