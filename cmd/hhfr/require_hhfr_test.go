//go:build unix

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// post sends a message, and returns the status and the body of the reply.
func post(t *testing.T, url string) (status int, text string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(url, "text/xml", strings.NewReader(envelope(1)))
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, string(body)
}

// TestRequireHHFR: with a mistyped --upstream, the server instead of the far half, a near half with
// --require-hhfr sends the server no call, tells the clients why, counts what it refused, and warns
// once. Over a stream calls pass, and are refused when the far half is gone.
func TestRequireHHFR(t *testing.T) {
	end := &plainEnd{answer: always(200, "text/xml", envelope(0))}
	server := httptest.NewServer(end)
	defer server.Close()
	metrics := "127.0.0.1:" + freePort(t)
	wrong := startProxyProcess(t, "127.0.0.1:0", server.URL+"/service", "--require-hhfr", "--quiet=false",
		"--metrics", metrics)
	require.Eventually(t, func() bool {
		return metricOf(t, metrics, "hhfr_stream_failures_total", `reason="no_partner"`) > 0
	}, time.Minute, 10*time.Millisecond)
	for range 12 {
		status, text := post(t, wrong.url("/service"))
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.Contains(t, text, "no stream to the upstream (no_partner), and --require-hhfr lets nothing go plainly")
	}
	for _, metric := range []string{"hhfr_calls_failed_total", "hhfr_plain_calls_total"} {
		assert.EqualValues(t, 12, metricOf(t, metrics, metric, `role="near"`), metric)
	}
	assert.Zero(t, metricOf(t, metrics, "hhfr_fall_backs_total"))
	wrong.end()
	_, bodies := end.got()
	assert.Empty(t, strings.Join(bodies, ""))
	assert.Equal(t, 1, strings.Count(wrong.errs.String(), "no partner was ever found there, though --require-hhfr"),
		&wrong.errs)
	assert.Contains(t, wrong.errs.String(), "12 plain: 0 bytes (required 12)")

	far := startProxyProcess(t, "127.0.0.1:0", server.URL+"/service", "--no-offer")
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/service"), "--require-hhfr", "-v")
	near.linked(1)
	status, _ := post(t, near.url("/service"))
	assert.Equal(t, http.StatusOK, status)
	far.kill()
	near.told("no stream")
	status, _ = post(t, near.url("/service"))
	assert.Equal(t, http.StatusServiceUnavailable, status)
	_, bodies = end.got()
	assert.Len(t, bodies, 1)

	for _, more := range [][]string{
		{"--no-offer"}, {"--soap-rm", "1.1"}, {"--transport", "http", "--common-store", "http://x/"},
	} {
		code, _, stderr := do(t, append([]string{"proxy", "--upstream", server.URL, "--require-hhfr"}, more...)...)
		assert.Equal(t, exit.WrongUsage, code, stderr)
		assert.Contains(t, stderr, "--require-hhfr does not go with")
	}
}

// TestNoPartnerIsTold: a half of a pair that has asked in vain for a stream says so at the default
// level, once, and with the flag that makes it one; but not one that may be no half, nor the far
// half of a pair, whatever goes by it plainly.
func TestNoPartnerIsTold(t *testing.T) {
	server := httptest.NewServer(&plainEnd{answer: always(200, "text/xml", envelope(0))})
	defer server.Close()
	for _, tt := range []struct {
		args []string
		by   string
		near bool // it has a near half before it
	}{
		{[]string{"--store", t.TempDir()}, "--store", false},
		{[]string{"--client-per-address"}, "--client-per-address", false},
		{[]string{"--mode", "explicit"}, "--mode", false},
		{nil, "", false},
		{[]string{"--store", t.TempDir(), "--no-offer"}, "", false},
		{[]string{"--store", t.TempDir()}, "", true},
	} {
		p := startProxyProcess(t, "127.0.0.1:0", server.URL+"/service", append(tt.args, "--quiet=false", "-v")...)
		if tt.near {
			startProxyProcess(t, "127.0.0.1:0", p.url("/service"), "-v").linked(1)
		}
		if !strings.Contains(strings.Join(tt.args, " "), "--no-offer") {
			p.told("has no partner for streams")
		}
		for range 12 {
			status, _ := post(t, p.url("/service"))
			assert.Equal(t, http.StatusOK, status)
		}
		p.end()
		said := p.errs.String()
		if tt.by == "" {
			assert.NotContains(t, said, "no partner was ever found", "%v", tt.args)
			continue
		}
		assert.Equal(t, 1, strings.Count(said, "level=WARN"), said)
		assert.Contains(t, said, `"no partner was ever found there, though `+tt.by+` says that this is half of a pair"`)
		assert.Contains(t, said, "--upstream names the address of the far proxy")
	}
}
