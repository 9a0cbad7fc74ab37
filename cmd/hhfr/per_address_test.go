//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClientPerAddress: with the flag, or the key of a route, a client that opens a connection for
// each call takes fewer bytes on the link. Without it, the address of 300 such connections is named
// once; not where that was decided.
func TestClientPerAddress(t *testing.T) {
	origin := httptest.NewServer(&numbered{seen: map[string]int{}})
	defer origin.Close()
	far := startProxyProcess(t, "127.0.0.1:0", origin.URL+"/service", "--no-offer")
	config := filepath.Join(t.TempDir(), "near.conf")
	route := fmt.Sprintf("[proxy route all]\nupstream = %s\npath = /service\nclient-per-address = true\n",
		far.url("/service"))
	require.NoError(t, os.WriteFile(config, []byte(route), 0o600))
	took := func(calls, streams int, args ...string) (octets float64, proposals int) {
		metrics := "127.0.0.1:" + freePort(t)
		near := startProxyProcess(t, "127.0.0.1:0", far.url("/service"), append(args, "-v", "--metrics", metrics)...)
		near.linked(streams)
		c := &callers{t: t, to: near.url("/service"), answers: map[string]bool{}}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for number := range calls {
			c.call(client, number+1)
		}
		require.EqualValues(t, calls, c.through.Load())
		octets = metricOf(t, metrics, "hhfr_link_bytes_total")
		near.end()
		return octets / float64(calls), strings.Count(near.errs.String(), "--client-per-address")
	}
	byConnection, proposals := took(310, 1)
	assert.Equal(t, 1, proposals)
	alone, proposals := took(310, 1, "--client-per-connection")
	assert.InDelta(t, byConnection, alone, byConnection/10)
	assert.Zero(t, proposals)
	byAddress, proposals := took(310, 1, "--client-per-address")
	assert.Less(t, byAddress, byConnection/2)
	assert.Zero(t, proposals)
	byRoute, _ := took(40, 2, "--config", config)
	assert.Less(t, byRoute, byConnection/2, "by a route, which has a stream of its own")
	far.end()
}
