//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// askMonitor asks for what a process tells at the address of --metrics.
func askMonitor(t *testing.T, addr, path string) []byte {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + path)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return text
}

// metricOf asks a process for the sum of a metric's series that contain all these texts.
func metricOf(t *testing.T, addr, name string, with ...string) (sum float64) {
	t.Helper()
	keepText(t, askMonitor(t, addr, "/status?format=json"), "status")
	lines := bufio.NewScanner(bytes.NewReader(askMonitor(t, addr, "/metrics")))
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), "} ")
		fits := strings.HasPrefix(series, name+"{")
		for _, text := range with {
			fits = fits && strings.Contains(series, text)
		}
		if fits {
			n, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err)
			sum += n
		}
	}
	return sum
}

// freePort is a port at which a process may listen.
func freePort(t *testing.T) string {
	_, port, found := strings.Cut(shared.Addr(t), ":")
	require.True(t, found)
	return port
}

// TestBlockedStreamIsAMetric: a stream that was agreed on and cannot be opened is in the metrics,
// as is each connection without it, and on stderr at the default level, once. Nor is an upstream
// that is gone logged for each call.
func TestBlockedStreamIsAMetric(t *testing.T) {
	port := closedPort(t)
	end := &plainEnd{answer: agreeing(t, func() string { return port })}
	server := httptest.NewServer(end)
	defer server.Close()
	metrics := "127.0.0.1:" + freePort(t)
	near := startProxyProcess(t, "127.0.0.1:0", server.URL+"/service", "--mode", "explicit", "--quiet=false",
		"--metrics", metrics)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	call := func() int {
		resp, err := client.Post(near.url("/service"), "text/xml", strings.NewReader(envelope(1)))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	near.told("a stream was agreed on and cannot be opened")
	for range 3 {
		assert.Equal(t, http.StatusOK, call())
	}
	assert.EqualValues(t, 1, metricOf(t, metrics, "hhfr_stream_blocked", `role="near"`))
	assert.EqualValues(t, 1, metricOf(t, metrics, "hhfr_stream_failures_total", `reason="blocked"`))
	assert.EqualValues(t, 3, metricOf(t, metrics, "hhfr_plain_calls_total", `reason="blocked"`))
	assert.EqualValues(t, 3, metricOf(t, metrics, "hhfr_fall_backs_total", `reason="blocked"`))
	assert.Zero(t, metricOf(t, metrics, "hhfr_streams"))

	server.Close()
	for range 5 {
		assert.Equal(t, http.StatusBadGateway, call())
	}
	near.end()
	assert.Equal(t, 1, strings.Count(near.errs.String(), "cannot be opened"), &near.errs)
	assert.Equal(t, 1, strings.Count(near.errs.String(), "msg=upstream"), "once, not for each call: %s", &near.errs)
	assert.Regexp(t, `hhfr: near http://\S+/service: 8 calls, 0 faults, 5 failed; 0 over streams: .*; `+
		`8 plain: .* on 3 connections, 8 fall-backs \(blocked 8\)`, &near.errs)
}

// TestNearOnlyWithoutPartner: a proxy that is only a near one has no use without a stream.
func TestNearOnlyWithoutPartner(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	near := startProxyProcess(t, "127.0.0.1:0", server.URL+"/service", "--tcp", "none", "--quiet=false")
	near.told("has no partner for streams")
	near.end()
	assert.Contains(t, near.errs.String(), "level=WARN")
}

var summaryOfPair = regexp.MustCompile(
	`hhfr: near (\S+): 20 calls, 0 faults, 0 failed; 20 over streams: (.*) of HTTP, (.*) on the link, ` +
		`ratio ([\d.]+) %; 1 stream opened`)

// TestSummaryOnSignal: SIGUSR1 has a proxy and a server report what they carried, with the ratio,
// and go on; the end reports it again. What they report is what --metrics has.
func TestSummaryOnSignal(t *testing.T) {
	origin := httptest.NewServer(&numbered{seen: map[string]int{}})
	defer origin.Close()
	farMetrics, nearMetrics := "127.0.0.1:"+freePort(t), freePort(t) // without a host it is loopback
	far := startProxyProcess(t, "127.0.0.1:0", origin.URL+"/service", "--no-offer", "--metrics", farMetrics)
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/service"), "--quiet=false", "-v", "--metrics", nearMetrics)
	near.linked(1)
	nearMetrics = "127.0.0.1:" + nearMetrics
	c := &callers{t: t, to: near.url("/service"), answers: map[string]bool{}}
	client := &http.Client{Transport: &http.Transport{}}
	for number := range 20 {
		c.call(client, number+1)
	}
	client.CloseIdleConnections()
	require.EqualValues(t, 20, c.through.Load())
	for _, of := range []struct{ addr, role string }{{nearMetrics, "near"}, {farMetrics, "far"}} {
		require.Eventually(t, func() bool { // a call is counted when it is over: its reply may be read before
			return metricOf(t, of.addr, "hhfr_operation_calls_total", `operation="op"`, of.role) == 20
		}, time.Minute, 10*time.Millisecond)
	}
	assert.Equal(t, metricOf(t, nearMetrics, "hhfr_http_bytes_total"), metricOf(t, farMetrics, "hhfr_http_bytes_total"))
	require.NoError(t, near.cmd.Process.Signal(syscall.SIGUSR1))
	near.told(" stream opened")
	got := summaryOfPair.FindStringSubmatch(near.errs.String())
	require.NotNil(t, got, &near.errs)
	ratio, err := strconv.ParseFloat(got[4], 64)
	require.NoError(t, err)
	assert.InDelta(t, 100*metricOf(t, nearMetrics, "hhfr_ratio"), ratio, 1, "the end of the lane is in one of them")
	near.end()
	assert.Len(t, summaryOfPair.FindAllString(near.errs.String(), -1), 2, &near.errs)
	assert.NotContains(t, near.errs.String(), "\r", "no live line but on a terminal")
	far.end()
}

// TestServeCounts: calls over streams and plain ones, by service and operation.
func TestServeCounts(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "hhfr", "serve", "--listen", "127.0.0.1:0",
		"--metrics", "127.0.0.1:0", "-o", "json")
	var errs said
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err, &errs)
	var server struct{ Addresses map[string]string }
	require.NoError(t, json.Unmarshal(line, &server))
	metrics, url := server.Addresses["metrics"], "http://"+server.Addresses["http"]+"/echo"
	message := shared.Testdata(t, "soap", "cwmp-inform.xml")
	code, _, stderr := do(t, "stream", url, message, "--repeat", "10", "--require-hhfr")
	require.Zero(t, code, stderr)
	assert.Regexp(t, `hhfr: 10 messages, .*; ratio \d+\.\d %`, stderr)
	resp, err := http.Post(url, "text/xml", strings.NewReader(envelope(1)))
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(t, resp.Body.Close())
	require.Eventually(t, func() bool {
		return metricOf(t, metrics, "hhfr_calls_total", `role="serve",upstream="/echo",way="stream"`) == 10 &&
			metricOf(t, metrics, "hhfr_plain_calls_total", `upstream="/echo",reason="client"`) == 1
	}, time.Minute, 10*time.Millisecond)
	assert.EqualValues(t, 10, metricOf(t, metrics, "hhfr_operation_calls_total", `operation="Inform"`))
	concat := strings.Replace(url, "/echo", "/concat", 1) // it has no such operation
	resp, err = http.Post(concat, "text/xml", strings.NewReader(envelope(1)))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	_, _, _ = do(t, "stream", concat, message, "--require-hhfr")
	for _, way := range []string{`way="stream"`, `way="plain"`} {
		require.Eventually(t, func() bool {
			return metricOf(t, metrics, "hhfr_faults_total", `upstream="/concat"`, way) == 1
		}, time.Minute, 10*time.Millisecond, way)
	}
	for _, direction := range []string{"sent", "received"} {
		assert.Positive(t, metricOf(t, metrics, "hhfr_operation_link_bytes_total", `operation="Inform"`, direction))
	}
	assert.Less(t, metricOf(t, metrics, "hhfr_operation_ratio", `operation="Inform"`), 1.0)
	ledger := strings.Replace(url, "/echo", "/ledger", 1)
	add := filepath.Join(t.TempDir(), "add.xml")
	require.NoError(t, os.WriteFile(add, []byte(addMessage("first")), 0o600))
	code, _, stderr = do(t, "stream", ledger, add, "--repeat", "3", "--ordered") // in a sequence
	require.Zero(t, code, stderr)
	require.Eventually(t, func() bool {
		return metricOf(t, metrics, "hhfr_calls_total", `role="serve",upstream="/ledger",way="stream"`) == 3
	}, time.Minute, 10*time.Millisecond)
	assert.Zero(t, metricOf(t, metrics, "hhfr_plain_calls_total", `upstream="/ledger"`))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), &errs)
	assert.Regexp(t, `hhfr: serve /ledger: 3 calls, 0 faults, 0 failed; 3 over streams: `, &errs)
	assert.Regexp(t,
		`hhfr: serve /echo: 11 calls, 0 faults, 0 failed; 10 over streams: .*, ratio \d+\.\d %; 1 stream opened; `+
			`1 plain: .* \(client 1\)`, &errs)
}

// TestMetricsAreForNoPage: counters are for requests that name the address as its operator does. A
// page in a browser can have a name of its own lead there, and gets nothing.
func TestMetricsAreForNoPage(t *testing.T) {
	serve := func(more ...string) string {
		args := append([]string{"serve", "--listen", "127.0.0.1:0", "-o", "json", "-q",
			"--metrics", "127.0.0.1:0"}, more...)
		return startCommand(t, exec.CommandContext(t.Context(), "hhfr", args...)).addresses["metrics"]
	}
	ask := func(addr, path, host, field, value string) (code int, text string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
		require.NoError(t, err)
		if r.Host = host; field != "" {
			r.Header.Set(field, value)
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode, string(body)
	}
	unnamed := serve()
	for _, tc := range []struct {
		host, field, value string
		code               int
	}{
		{"127.0.0.1:9101", "", "", 200}, {"[::1]:9101", "", "", 200}, {"192.0.2.7", "", "", 200},
		{"LOCALHOST:9101", "", "", 200}, {"gate.example:9101", "", "", 403}, {"127.0.0.1.evil.example", "", "", 403},
		{"127.0.0.1:9101", "Origin", "http://evil.example", 403}, {"localhost", "Origin", "null", 403},
		{"127.0.0.1", "Sec-Fetch-Site", "cross-site", 403}, {"127.0.0.1", "Sec-Fetch-Site", "none", 200},
		{"127.0.0.1", "Sec-Fetch-Site", "same-origin", 200},
	} {
		for _, path := range []string{"/metrics", "/status", "/status?format=json", "/"} {
			code, text := ask(unnamed, path, tc.host, tc.field, tc.value)
			assert.Equal(t, tc.code, code, "%s %+v", path, tc)
			assert.Equal(t, tc.code == http.StatusForbidden, strings.Contains(text, "--metrics-host"), text)
		}
		code, _ := ask(unnamed, "/healthz", tc.host, tc.field, tc.value)
		assert.Equal(t, http.StatusOK, code, "it says nothing")
	}
	named := serve("--metrics-host", "other.example", "--metrics-host", "gate.example")
	for host, want := range map[string]int{"Gate.Example:9101": 200, "evil.example": 403, "x.gate.example": 403} {
		code, _ := ask(named, "/metrics", host, "", "")
		assert.Equal(t, want, code, host)
	}
	code, _ := ask(named, "/metrics", "gate.example", "Sec-Fetch-Site", "cross-site")
	assert.Equal(t, http.StatusForbidden, code)
}
