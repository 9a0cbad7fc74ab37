//go:build !race

package hhfr_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
)

// TestCallsAllocateLittle: a call looks at its envelope where it is, and knows the head of a reply
// that came before.
func TestCallsAllocateLittle(t *testing.T) {
	client, err := hhfr.Dial(t.Context(), serve(t, stream, echo), config(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	message := envelope("1.1", "<a>1</a>")
	call := func() {
		reply, err := client.Call(t.Context(), &hhfr.Request{Body: hhfr.Body(message)})
		require.NoError(t, err)
		all, err := reply.ReadAll()
		require.NoError(t, err)
		require.Equal(t, message, string(all))
	}
	for range 20 {
		call()
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(500, call), 42.0)
}
