//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClientPerAddress: with the flag, or the key of a route, a client that opens a connection for
// each call takes fewer bytes on the link.
func TestClientPerAddress(t *testing.T) {
	origin := httptest.NewServer(&numbered{seen: map[string]int{}})
	defer origin.Close()
	far := startProxyProcess(t, "127.0.0.1:0", origin.URL+"/service", "--no-offer")
	config := filepath.Join(t.TempDir(), "near.conf")
	route := fmt.Sprintf("[proxy route all]\nupstream = %s\npath = /service\nclient-per-address = true\n",
		far.url("/service"))
	require.NoError(t, os.WriteFile(config, []byte(route), 0o600))
	took := func(streams int, args ...string) float64 {
		metrics := "127.0.0.1:" + freePort(t)
		near := startProxyProcess(t, "127.0.0.1:0", far.url("/service"), append(args, "-v", "--metrics", metrics)...)
		near.linked(streams)
		c := &callers{t: t, to: near.url("/service"), answers: map[string]bool{}}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for number := range 40 {
			c.call(client, number+1)
		}
		require.EqualValues(t, 40, c.through.Load())
		octets := metricOf(t, metrics, "hhfr_link_bytes_total")
		near.end()
		return octets
	}
	byConnection := took(1)
	assert.Less(t, took(1, "--client-per-address"), byConnection/2)
	assert.Less(t, took(2, "--config", config), byConnection/2, "by a route, which has a stream of its own")
	far.end()
}
