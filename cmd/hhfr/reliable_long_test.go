package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore/bolt"
)

// longRequest is a message of some 5 MiB, which /echo returns.
var longRequest = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><a>` +
	strings.Repeat("0123456789abcdef", 5<<16) + `</a></s:Body></s:Envelope>`

// isLongReply asserts that a message is the reply to it.
func isLongReply(t *testing.T, message string) {
	t.Helper()
	same := strings.Replace(message, "<s:Header></s:Header>", "", 1) == longRequest
	assert.True(t, same, "%d bytes: %.200s", len(message), message)
}

// noPieces asserts that nothing of long messages is left in a store.
func noPieces(t *testing.T, file string) {
	t.Helper()
	store, err := bolt.Open(file, bolt.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	for info, err := range store.List(t.Context(), "urn:hhfr:piece:") {
		require.NoError(t, err)
		assert.Fail(t, "left", info.URI)
	}
}

// Messages and replies of more than 4 MiB go in sequences of WS-ReliableMessaging, wherever replies
// come, over a run that does not get them through, too, and leave nothing in the stores.
func TestLongMessagesInSequences(t *testing.T) {
	for name, flags := range map[string][]string{
		"1.0": {"--soap-rm", "1.0"}, "1.1": {"--soap-rm", "1.1"},
		"callback": {"--soap-rm", "1.1", "--callback", "127.0.0.1:0"}, "poll": {"--soap-rm", "1.1", "--poll", "100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "long.xml")
			require.NoError(t, os.WriteFile(file, []byte(longRequest), 0o600))
			services, stop := servicesHere(t, "--soap-rm", "all", "--store", "bolt:"+filepath.Join(dir, "server.db"))
			service, away := newAwayService(t, services["echo"].URL)
			client := filepath.Join(dir, "client.db")
			run := func(reconnect string, files ...string) (int, string, string) {
				return do(t, append(append([]string{"stream", service, "--action", "urn:echo",
					"--store", "bolt:" + client, "-v",
					"--reconnect", reconnect, "--save-dir", filepath.Join(dir, "out")}, flags...), files...)...)
			}
			code, _, stderr := run("1m", file)
			require.Zero(t, code, stderr)
			reply, err := os.ReadFile(filepath.Join(dir, "out", "000001-reply.xml"))
			require.NoError(t, err)
			isLongReply(t, string(reply))
			if name == "1.1" {
				away.Store(true)
				code, _, stderr = run("1s", file)
				require.NotZero(t, code, stderr)
				away.Store(false)
				code, _, stderr = run("1m")
				require.Zero(t, code, stderr)
				assert.Contains(t, stderr, "1 message accepted before, 0 of them acknowledged")
				assert.Contains(t, stderr, "sequence: 1 message accepted, 1 acknowledged, 1 replies")
			}
			stop()
			noPieces(t, filepath.Join(dir, "server.db"))
			noPieces(t, client)
		})
	}
}

// newAwayService is a service as long as it is not away: then only sequences are created.
func newAwayService(t *testing.T, service string) (at string, away *atomic.Bool) {
	t.Helper()
	to, err := url.Parse(service)
	require.NoError(t, err)
	away = &atomic.Bool{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() && !strings.Contains(r.Header.Get("SOAPAction"), "CreateSequence") {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + to.Path, away
}

// A far proxy takes long messages into sequences; its client sees plain SOAP.
func TestFarProxyTakesLongMessagesIntoSequences(t *testing.T) {
	services, stop := servicesHere(t, "--soap-rm", "all")
	defer stop()
	far := startProxyProcess(t, "127.0.0.1:0", services["echo"].URL, "--soap-rm", "1.1")
	defer far.end()
	response, err := http.Post(far.url("/echo"), "text/xml; charset=utf-8", strings.NewReader(longRequest))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, response.StatusCode)
	isLongReply(t, string(body))
}
