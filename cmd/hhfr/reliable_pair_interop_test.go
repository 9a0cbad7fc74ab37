//go:build interop

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInteropReliablePair: Apache CXF sends to itself and to hhfr serve, and hhfr stream to Apache
// CXF, through a pair, and what is decoupled comes back through another one. Clients that know no
// WS-ReliableMessaging send to CXF through a far proxy that does. The links before the proxies lose
// one of ten requests.
func TestInteropReliablePair(t *testing.T) {
	const messages = 30
	c := newCXF(t)
	pair := func(server string) string {
		to, err := url.Parse(server)
		require.NoError(t, err)
		far := startProxyProcess(t, "127.0.0.1:0", server)
		near := startProxyProcess(t, "127.0.0.1:0", far.url(to.Path), "-v")
		near.linked(1)
		return near.url(to.Path)
	}
	paths := func(t *testing.T, services []string, forms ...form) (list []path) {
		for i, f := range forms {
			list = append(list, newPath(t, uint64(i), f, services[i], pair))
		}
		return list
	}
	one := []form{forms[3], forms[5]} // decoupled in 1.0 and 1.1
	t.Run("CXF to CXF", func(t *testing.T) {
		services, entries := c.serve(t, len(forms))
		c.send(t, messages, toCXF, paths(t, services, forms...)...)
		arrived(t, messages, entries(), forms...)
	})
	t.Run("hhfr to CXF", func(t *testing.T) {
		services, entries := c.serve(t, len(one))
		streamOver(t, messages, paths(t, services, one...)...)
		arrived(t, messages, entries(), one...)
	})
	t.Run("CXF to hhfr", func(t *testing.T) {
		services, stop := servicesHere(t, "--soap-rm", "all", "--allow-host", "127.0.0.1",
			"--store", "bolt:"+filepath.Join(t.TempDir(), "server.db"))
		t.Cleanup(stop)
		ledger := services["ledger"].URL
		c.send(t, messages, 500*time.Millisecond, paths(t, []string{ledger, ledger}, one...)...)
		arrived(t, messages, entriesOf(t, ledger), one...)
	})
	t.Run("plain to CXF", func(t *testing.T) { plainToCXF(t, c, messages) })
}

// plainToCXF has a client that knows no WS-ReliableMessaging send messages through a far proxy that
// does.
func plainToCXF(t *testing.T, c cxf, messages int) {
	t.Helper()
	own, entries := c.serve(t, 1)
	behind := newLossyLink(t, 1, own[0])
	wants := startProxyProcess(t, "127.0.0.1:0", behind.url, "--soap-rm", "1.1")
	client := &http.Client{Transport: &http.Transport{}}
	var want []string
	for n := range messages {
		text := strings.Replace(entryMessage(n), "m-", "plain-", 1)
		at := wants.url("/ledger0")
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
	assert.Positive(t, behind.lost.Load())
	assert.Equal(t, want, entries())
}
