package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// TestBlockedPortIsTold: the service agrees, and its port of streams is blocked. A proxy warns
// once, for any number of calls and offers; stream reports it with its run. Both name the remedy.
func TestBlockedPortIsTold(t *testing.T) {
	port := closedPort(t)
	end := &plainEnd{answer: agreeing(t, func() string { return port })}
	server := httptest.NewServer(end)
	defer server.Close()
	want := "no stream to 127.0.0.1" + port + " (connection refused)"

	near := startProxyProcess(t, "127.0.0.1:0", server.URL+"/service", "--mode", "explicit", "--remember", "1ms",
		"--quiet=false")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	offers := 0
	require.Eventually(t, func() bool {
		resp, err := client.Post(near.url("/service"), "text/xml", strings.NewReader(envelope(1)))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		more, _ := end.got()
		offers += more
		return offers >= 5
	}, time.Minute, 10*time.Millisecond)
	near.kill()
	said := near.errs.String()
	assert.Equal(t, 1, strings.Count(said, "\n"), said)
	assert.Contains(t, said, "level=WARN")
	assert.Contains(t, said, want)
	assert.Contains(t, said, "open that port")

	message := shared.Testdata(t, "soap", "cwmp-inform.xml")
	code, _, stderr := do(t, "stream", server.URL+"/service", message, "--mode", "explicit")
	assert.Zero(t, code)
	assert.Contains(t, stderr, "hhfr: plain SOAP: "+want+"\nhhfr: hint: open that port")
	code, _, stderr = do(t, "stream", server.URL+"/service", message, "--mode", "explicit", "-q")
	assert.Zero(t, code)
	assert.Empty(t, stderr)
}

// TestNoOffer: --no-offer spares a server that logs everything unknown to it.
func TestNoOffer(t *testing.T) {
	end := &plainEnd{answer: always(200, "text/xml", envelope(0))}
	server := httptest.NewServer(end)
	defer server.Close()
	far := startProxyProcess(t, "127.0.0.1:0", server.URL+"/service", "--no-offer")
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/service"), "-v")
	near.linked(1)
	for _, to := range []*proxyProcess{near, far} {
		resp, err := http.Post(to.url("/service"), "text/xml", strings.NewReader(envelope(1)))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	offers, bodies := end.got()
	assert.Zero(t, offers)
	assert.Len(t, bodies, 2)
	code, _, stderr := do(t, "proxy", "--upstream", server.URL, "--no-offer", "--tcp", "none")
	assert.Equal(t, exit.WrongUsage, code, stderr)
}
