//go:build interop

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInteropReliablePair: Apache CXF with itself through a pair, and clients that know no
// WS-ReliableMessaging with it through a far proxy that does, over links that lose every tenth
// request.
func TestInteropReliablePair(t *testing.T) {
	const messages = 10
	c := newCXF(t)
	own, entries := c.serve(t)
	far := startProxyProcess(t, "127.0.0.1:0", own)
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/ledger"), "-v")
	near.linked(1)
	link, lost := everyTenth(t, near.url("/ledger"))
	args := []string{"client", fmt.Sprint(messages)}
	var want []string
	for _, f := range forms {
		args = append(args, link, f[0], f[1])
		for n := range messages {
			want = append(want, fmt.Sprintf("e%d", n))
		}
	}
	out, err := c.command(t, args...).Output()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, len(want), strings.Count(string(out), "\n"), "%s", out)
	assert.Positive(t, lost.Load())

	behind, lost := everyTenth(t, own)
	wants := startProxyProcess(t, "127.0.0.1:0", behind, "--soap-rm", "1.1")
	client := &http.Client{Transport: &http.Transport{}}
	for n := range messages {
		text := strings.Replace(entryMessage(n), "m-", "plain-", 1)
		at := wants.url("/ledger")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(text))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "text/xml; charset=utf-8")
		r.Header.Set("SOAPAction", `"urn:hhfr:peer:1/add"`)
		response, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusOK, response.StatusCode)
		want = append(want, fmt.Sprint("plain-", n))
	}
	client.CloseIdleConnections()
	wants.end()
	assert.Positive(t, lost.Load())
	assert.Equal(t, want, entries())
}
