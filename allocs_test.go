//go:build !race

package hhfr_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
)

// TestCallsAllocateLittle: a call looks at its envelope where it is, and knows its own head and
// that of the reply if they came before, whatever fields are in them.
func TestCallsAllocateLittle(t *testing.T) {
	client, err := hhfr.Dial(t.Context(), serve(t, stream, echo), config(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	message := envelope("1.1", "<a>1</a>")
	fields := http.Header{"Content-Type": {"text/xml"}, "Authorization": {"Basic eDp5"}}
	for name, request := range map[string]func() *hhfr.Request{
		"plain":  func() *hhfr.Request { return &hhfr.Request{Body: hhfr.Body(message)} },
		"fields": func() *hhfr.Request { return &hhfr.Request{Header: fields, Body: strings.NewReader(message)} },
	} {
		call := func() {
			reply, err := client.Call(t.Context(), request())
			require.NoError(t, err)
			all, err := reply.ReadAll()
			require.NoError(t, err)
			require.Equal(t, message, string(all))
		}
		for range 20 {
			call()
		}
		assert.LessOrEqual(t, testing.AllocsPerRun(500, call), 46.0, name)
	}
}
